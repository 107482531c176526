# Tilewright in a container: docker build -t tilewright . && docker run --rm tilewright
FROM debian:12-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates git g++ make perl python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /tilewright
COPY . .
RUN make setup
CMD ["make", "demo"]
