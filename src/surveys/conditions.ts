/** Conditions under which a survey is shown (contract: experiments 1.5). */

import { isJsonObject, type Json, type JsonObject } from "../lib/json/value.ts";
import { assertChoice, assertSize, assertSwitch, assertText, fail, isSet } from "./display-texts.ts";

const matches = ["regex", "not_regex", "exact", "is_not", "icontains", "not_icontains"];
/** Of properties of trigger events. */
const propertyMatches = [...matches, "gt", "lt"];
const waitDaysMax = 3_650;
/** A linked variant that stands for all of them. */
const anyVariant = "any";

/** @throws {InvalidFieldError} */
export function readConditions(sent: JsonObject): JsonObject {
  assertSize("conditions", sent);
  const { deviceTypes, seenSurveyWaitPeriodInDays: wait } = sent;
  for (const name of ["url", "selector", "linkedFlagVariant"]) assertText(sent[name], `conditions.${name}`);
  for (const name of ["urlMatchType", "deviceTypesMatchType"])
    assertChoice(sent[name], matches, `conditions.${name}`);
  if (isSet(deviceTypes) && !isListOf(deviceTypes, (device) => typeof device === "string"))
    fail("conditions.deviceTypes", "Must be a list of texts.");
  if (isSet(wait) && getWaitDays(sent) === undefined)
    fail("conditions.seenSurveyWaitPeriodInDays", `Must be an integer from 0 to ${waitDaysMax}.`);
  assertEvents(sent.events);
  return sent;
}

/** Events that show the survey. posthog-js fails on a page where their filters have another form. */
function assertEvents(events: Json | undefined): void {
  if (!isSet(events)) return;
  const values = isJsonObject(events) ? (events.values ?? []) : null;
  const isEvent = (event: Json) => isJsonObject(event) && typeof event.name === "string" && event.name !== "";
  if (!isListOf(values, isEvent))
    fail("conditions.events", "`values` must be a list of objects with `name`.");
  assertSwitch((events as JsonObject).repeatedActivation, "conditions.events.repeatedActivation");
  for (const { propertyFilters } of values as JsonObject[])
    if (isSet(propertyFilters) && !arePropertyFilters(propertyFilters))
      fail(
        "conditions.events.propertyFilters",
        `Must be an object by property, each with a list \`values\` and an \`operator\`: ${propertyMatches.join(", ")}.`,
      );
}

const arePropertyFilters = (filters: Json) =>
  isJsonObject(filters) &&
  Object.values(filters).every(
    (filter) =>
      isJsonObject(filter) &&
      propertyMatches.includes(filter.operator as string) &&
      isListOf(filter.values ?? null, (value) => typeof value === "string"),
  );

const isListOf = (sent: Json, test: (item: Json) => boolean) => Array.isArray(sent) && sent.every(test);

/** Days after any survey in which a person sees no other. */
export function getWaitDays({ seenSurveyWaitPeriodInDays: days }: JsonObject): number | undefined {
  const isValid = typeof days === "number" && Number.isInteger(days) && days >= 0 && days <= waitDaysMax;
  return isValid ? days : undefined;
}

/**
 * Checks the variant of the linked flag that persons need; messages are those of PostHog.
 *
 * @param variants of the linked flag; undefined: no flag is linked
 * @throws {InvalidFieldError}
 */
export function assertLinkedVariant(
  { linkedFlagVariant: variant }: JsonObject,
  variants: readonly string[] | undefined,
): void {
  if (typeof variant !== "string" || variant === "") return;
  const reject = (message: string) => fail("conditions.linkedFlagVariant", message);
  if (variants === undefined) reject("linkedFlagVariant can only be used when a linked_flag_id is specified");
  else if (variants.length === 0 && variant !== anyVariant)
    reject(`Feature flag variant '${variant}' specified but the linked feature flag has no variants`);
  else if (variant !== anyVariant && !variants.includes(variant))
    reject(`Feature flag variant '${variant}' does not exist. Available variants: ${variants.join(", ")}`);
}
