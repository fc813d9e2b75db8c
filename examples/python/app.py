"""Loads a year of history in order, asks for a flag, and reads the history back.

Usage: python3 app.py <server> <project key> <personal key>
"""

import json
import sys
import time
import urllib.request
from datetime import datetime, timedelta, timezone

from posthog import Posthog

server, project_key, personal_key = sys.argv[1:4]

# Historical events have a separate lane: in order, with their own times, not metered, and never overwriting newer values.
history = Posthog(project_key, host=server, historical_migration=True)
begin = datetime(2025, 1, 1, tzinfo=timezone.utc)
for month in range(12):
    history.capture(
        "paid",
        distinct_id="user-1",
        timestamp=begin + timedelta(days=30 * month),
        properties={"amount": 10 + month, "$set": {"months": month + 1}},
    )
history.shutdown()

today = Posthog(project_key, host=server)
print("checkout:", "new" if today.feature_enabled("new-checkout", "user-1") else "old")
today.shutdown()


def query(statement):
    """Runs a SELECT; needs a personal key with the scope query:read."""
    request = urllib.request.Request(
        f"{server}/api/projects/@current/query/",
        data=json.dumps({"query": statement}).encode(),
        headers={"Authorization": f"Bearer {personal_key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["rows"]


# Events are readable about a second after they are acknowledged.
for _ in range(60):
    rows = query("SELECT count(*)::INT AS months, sum(prop('amount')::INT)::INT AS paid FROM events WHERE event = 'paid'")
    if rows[0]["months"] == 12:
        break
    time.sleep(0.5)
print(f"paid in {rows[0]['months']} months: {rows[0]['paid']}")
