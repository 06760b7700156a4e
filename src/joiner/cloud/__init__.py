"""The protocol of providers, and the providers that implement it. A provider chooses only among the options it is handed."""
