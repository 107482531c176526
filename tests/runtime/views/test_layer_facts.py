"""Blocks are neighbours whose names begin alike, else whose results are equally large."""

from tilewright.runtime.views.layer_facts import attribute_texts, blocks


def test_blocks_follow_the_paths_of_names():
    names = [f"/layer{stage}/{block}/conv{each}" for stage in range(3) for block in range(2) for each in range(3)]
    found = blocks(names, {})
    assert found == [f"layer{stage}/{block}" if len(set(found)) > 3 else f"layer{stage}"
                     for stage in range(3) for block in range(2) for each in range(3)]


def test_layers_without_paths_are_blocks_by_the_size_of_their_results():
    names = [f"Conv_{place}" for place in range(20)]
    shapes = {name: (8, 32 >> place // 5, 32 >> place // 5) for place, name in enumerate(names)}
    found = blocks(names, shapes)
    assert len(set(found)) == 4
    assert found[:5] == ["results of 32 × 32"] * 5


def test_a_block_that_comes_back_is_another():
    names = [f"{'ab'[place // 5 % 2]}/{place}" for place in range(20)]
    assert len(dict.fromkeys(blocks(names, {}))) == 4


def test_layers_of_a_small_network_are_blocks_of_their_own():
    assert blocks(["a/1", "a/2", "b"], {}) == ["a/1", "a/2", "b"]


def test_pairs_are_written_as_products():
    assert attribute_texts({"kernel": (3, 5), "groups": 4}) == {"kernel": "3 × 5", "groups": "4"}
