"""The only room that knows Prefect: flows, their runner and the command line."""
