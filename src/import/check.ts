/** Finds out before sending which events ingestion would leave out, by the rules of ingestion itself. */

import { normalize, requestFacts } from "../ingestion/normalize.ts";
import { parsePayload } from "../ingestion/payload.ts";
import { nowMicros } from "../time.ts";

/** Why the event with this JSON text would not be stored; undefined when it would. */
export function refusalOf(text: string): string | undefined {
  const receivedMicros = nowMicros();
  const facts = requestFacts({
    ...{ receivedMicros, sentAtMicros: undefined, clientIp: undefined, anonymizeIps: false },
    makeUuid: () => "00000000-0000-4000-8000-000000000000",
  });
  const { items } = parsePayload(`[${text}]`, true);
  const outcome = normalize(items.at(0), facts);
  if (outcome.kind === "notice") return outcome.warning.type;
  if (outcome.kind === "dropped") return outcome.reason.type;
  const invalid = outcome.warnings.find(({ type }) => type === "ignored_invalid_timestamp");
  return invalid?.type;
}
