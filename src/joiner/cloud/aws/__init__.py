"""The provider for Amazon EC2: EC2NodeClass, instance types and prices from EC2's own answers, launches with CreateFleet.

Only `boto.py` imports the SDK, and only when a cloud is really asked: reading an EC2NodeClass offline needs neither boto3 nor an
account.
"""
