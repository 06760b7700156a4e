"""The pretend account in EC2 as a server on loopback: what `AWS_ENDPOINT_URL` can name where there is no AWS."""
