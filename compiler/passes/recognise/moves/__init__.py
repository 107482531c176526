"""Movements of floats between integers become movements of integers."""
