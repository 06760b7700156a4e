"""`joiner plan`: what would be bought for pods."""
