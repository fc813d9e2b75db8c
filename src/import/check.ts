/** Finds out before sending which events ingestion would leave out, by the rules of ingestion itself. */

import { InvalidItem } from "../http/decode/failures.ts";
import { normalize, requestFacts } from "../ingestion/normalize.ts";
import type { Outcome, WarningType } from "../ingestion/outcome.ts";
import { parsePayload } from "../ingestion/payload.ts";
import { nowMicros } from "../lib/time.ts";

/** Such an event would be dated with the time of the import, which is never what somebody brings old data for. */
const withoutTime = new Set<WarningType>(["ignored_invalid_timestamp", "historical_event_without_timestamp"]);

/** Why each of the events with these JSON texts would not be stored; undefined for those that would. */
export function refusalsOf(texts: readonly string[]): (string | undefined)[] {
  if (texts.length === 0) return [];
  try {
    return refusals(texts);
  } catch {
    // One that cannot even be taken apart spoils the others.
    return texts.map((text) => {
      try {
        return refusals([text])[0];
      } catch (error) {
        return error instanceof InvalidItem ? error.reason : "invalid_payload";
      }
    });
  }
}

function refusals(texts: readonly string[]): (string | undefined)[] {
  const facts = requestFacts({
    ...{ receivedMicros: nowMicros(), sentAtMicros: undefined, isHistorical: true },
    ...{ clientIp: undefined, anonymizeIps: false },
    makeUuid: () => "00000000-0000-4000-8000-000000000000",
  });
  const { items } = parsePayload(`[${texts.join(",")}]`, true);
  return texts.map((_, index) => refusalOf(normalize(items.at(index), facts)));
}

function refusalOf(outcome: Outcome): string | undefined {
  if (outcome.kind === "notice") return outcome.warning.type;
  if (outcome.kind === "dropped") return outcome.reason.type;
  return outcome.warnings.find(({ type }) => withoutTime.has(type))?.type;
}
