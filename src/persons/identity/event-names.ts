/** Event names with special meaning for persons and groups. */

export const identifyEvent = "$identify";
export const aliasEvent = "$create_alias";
export const mergeDangerouslyEvent = "$merge_dangerously";

const groupIdentifyEvents: ReadonlySet<string> = new Set(["$groupidentify", "$group_identify"]);

/** Both spellings: migration guides write the name with an underscore. Source: requirement, Events 4. */
export function isGroupIdentify(event: string): boolean {
  return groupIdentifyEvents.has(event);
}

/** Automatic events not caused by a person: they never write person properties. Source: contract, ingestion 12.2. */
export function leavesPersonAlone(event: string): boolean {
  return event === "$exception" || event === "$$heatmap";
}
