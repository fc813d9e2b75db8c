"""Evaluates the flag of an experiment for 40 persons, remotely or locally, and prints the variants as one JSON object."""

import json
import sys
import warnings

from posthog import Posthog

warnings.simplefilter("ignore", DeprecationWarning)
url, token, personal_key, flag = sys.argv[1:5]
options = {"personal_api_key": personal_key, "poll_interval": 3600} if personal_key else {}
client = Posthog(token, host=url, max_retries=0, **options)

seen = {"control": 0, "test": 0}
paid = {"control": 0, "test": 0}
changed = []
for number in range(40):
    person = f"p{number}"
    variant = client.get_feature_flag(flag, person)
    # A second evaluation exposes no one again.
    if client.get_feature_flag(flag, person) != variant:
        changed.append(person)
    seen[variant] += 1
    if number % 3 == 0:
        paid[variant] += 1
        client.capture("paid", distinct_id=person)
client.shutdown()
print(json.dumps({"seen": seen, "paid": paid, "changed": changed}))
