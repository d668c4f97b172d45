"""The tables of the file of answers and ledger."""

import sqlite3
from datetime import UTC, datetime
from typing import Final

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, request TEXT NOT NULL, raw TEXT, kind TEXT, message TEXT,
    at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE IF NOT EXISTS ledger (id INTEGER PRIMARY KEY, run TEXT NOT NULL, key TEXT NOT NULL, role TEXT NOT NULL,
    provider TEXT NOT NULL, model TEXT NOT NULL, attempt INTEGER NOT NULL, outcome TEXT NOT NULL, message TEXT,
    tokens_in INTEGER, tokens_out INTEGER, images INTEGER, cost REAL, price_date TEXT, latency_s REAL,
    cached INTEGER NOT NULL, at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, batch TEXT);
CREATE TABLE IF NOT EXISTS batches (name TEXT PRIMARY KEY, run TEXT NOT NULL, service TEXT NOT NULL, id TEXT,
    state TEXT NOT NULL, requests INTEGER NOT NULL, sent REAL NOT NULL, told TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS batched (key TEXT NOT NULL, batch TEXT NOT NULL, row INTEGER NOT NULL, request TEXT NOT NULL,
    forecast REAL NOT NULL, PRIMARY KEY (key, batch));
"""


def make_tables(db: sqlite3.Connection) -> None:
    """Make the tables that are not there."""
    db.executescript(_SCHEMA)
    # Files from before there were batches.
    if "batch" not in {name for _, name, *_ in db.execute("PRAGMA table_info(ledger)")}:
        db.execute("ALTER TABLE ledger ADD COLUMN batch TEXT")


def now() -> str:
    """As SQLite's CURRENT_TIMESTAMP; not that itself, for a statement may be done again elsewhere."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
