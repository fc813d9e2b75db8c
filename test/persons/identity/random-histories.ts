/** Random histories of few IDs, applied in order by `applyToPersons` and by partitions in any order. */

import type { JournalEvent } from "../../../src/journal/entry.ts";
import { personUuid } from "../../../src/persons/identity/distinct-ids.ts";
import { getOperations } from "../../../src/persons/identity/operations.ts";
import { applyToPersons } from "../../../src/persons/identity/person-rules.ts";
import { type Person, PersonsState } from "../../../src/persons/identity/persons-state.ts";
import { ParsedMembers } from "../../../src/scan/members.ts";
import { type PendingMerge, StampedPersons } from "./stamped-persons.ts";
import type { StampedWrite } from "./stamped-properties.ts";

export type Random = (below: number) => number;

/** The classes that the contract excludes, and what a history consists of. */
export interface HistoryOptions {
  withOnce: boolean;
  withUnset: boolean;
  withMerges: boolean;
  lanes: "realtime" | "historical" | "both";
}

const ids = ["a1", "b2", "c3", "u4", "v5"];
const names = ["p", "q"];
const projectId = 1;

/** A history; the value of a set is ten times its number, of a once one more. */
export function randomHistory(random: Random, options: HistoryOptions): JournalEvent[] {
  const pick = <Item>(items: readonly Item[]) => items[random(items.length)]!;
  const isIn = (percent: number) => random(100) < percent;
  return Array.from({ length: 3 + random(12) }, (_, index) => {
    const seq = index + 1;
    const properties: Record<string, unknown> = {};
    if (isIn(60)) properties.$set = { [pick(names)]: seq * 10 };
    if (options.withOnce && isIn(50)) properties.$set_once = { [pick(names)]: seq * 10 + 1 };
    if (options.withUnset && isIn(25)) properties.$unset = [pick(names)];
    let event = "e";
    const kind = random(100);
    if (options.withMerges && kind < 38) {
      event = kind < 25 ? "$identify" : kind < 33 ? "$create_alias" : "$merge_dangerously";
      properties[event === "$identify" ? "$anon_distinct_id" : "alias"] = pick(ids);
    }
    return {
      kind: "event",
      seq,
      projectId,
      uuid: `event-${seq}`,
      event,
      distinctId: pick(ids),
      timeMicros: 1_000 + random(1_000),
      receivedMicros: seq,
      historical: options.lanes === "both" ? isIn(50) : options.lanes === "historical",
      mode: event === "e" && isIn(10) ? "propertyless" : "full",
      properties: new ParsedMembers(properties),
    };
  });
}

export interface ShownPerson {
  uuid: string;
  main: string;
  identified: boolean;
  created: number;
  ids: string[];
  /** Name, value and time of the last realtime write. */
  properties: [name: string, text: string, micros: number][];
}

export interface Outcome {
  persons: ShownPerson[];
  rejected: string[];
}

function shown(persons: ShownPerson[], rejected: string[]): Outcome {
  for (const person of persons) {
    person.ids.sort();
    person.properties.sort();
  }
  return { persons: persons.sort((one, other) => (one.uuid < other.uuid ? -1 : 1)), rejected };
}

/** What one engine makes of a history, in order. */
export function inOrder(history: readonly JournalEvent[]): Outcome {
  const anonymous = new Set<string>();
  let rowId = 0;
  const state = new PersonsState(
    () => [],
    () => ++rowId,
    { has: (_, id) => anonymous.has(id) },
  );
  const rejected: string[] = [];
  for (const event of history) {
    const operations = getOperations(event);
    if (operations === undefined) {
      anonymous.add(event.distinctId);
      continue;
    }
    const warnings = applyToPersons(state, event, operations);
    if (warnings.some(({ type }) => type === "cannot_merge_already_identified")) rejected.push(event.uuid);
  }
  const found = new Map<Person, string[]>();
  for (const id of ids) {
    const person = state.find(projectId, id);
    if (person !== undefined) found.set(person, [...(found.get(person) ?? []), id]);
  }
  const persons = [...found].map(([person, own]): ShownPerson => {
    const { names: held, texts, times } = person.bag.content;
    return {
      uuid: person.uuid,
      main: person.mainDistinctId,
      identified: person.isIdentified,
      created: person.createdMicros,
      ids: own,
      properties: held.names.map((name, slot) => [name, texts[slot]!, times[slot]!]),
    };
  });
  return shown(persons, rejected);
}

function toWrites(event: JournalEvent): StampedWrite[] {
  const { setOnce, set, unset } = getOperations(event)!.properties;
  const { seq: number, historical, timeMicros } = event;
  const stamp = { number, historical, timeMicros };
  const members = (kind: "once" | "set", lists: typeof set) =>
    lists.flatMap(({ members: values, names: written, indexes }) =>
      written.map((name, at) => ({ kind, name, text: values.text(indexes[at]!), ...stamp })),
    );
  const unsets = unset.map((name) => ({ kind: "unset" as const, name, text: "", ...stamp }));
  return [...members("once", setOnce), ...members("set", set), ...unsets];
}

export interface PartitionedOptions {
  partitions: number;
  /** `at-once`: a partition applies its merges like other events. */
  merges: "in-lane" | "at-once";
  /** History is written as if no realtime write had been seen. */
  forgetsTimes?: boolean;
}

/** What partitions make of a history that apply batches of random sizes in a random order. */
export function byPartitions(
  history: readonly JournalEvent[],
  random: Random,
  { partitions, merges, forgetsTimes = false }: PartitionedOptions,
): { outcome: Outcome; persons: StampedPersons } {
  const persons = new StampedPersons((id) => personUuid(projectId, id));
  const ofPartition = (event: JournalEvent, at: number) => event.distinctId.charCodeAt(1) % partitions === at;
  const lanes = [false, true].map((historical) => ({
    queues: Array.from({ length: partitions }, (_, at) =>
      history.filter((event) => event.historical === historical && ofPartition(event, at)),
    ),
    pending: [] as PendingMerge[],
  }));
  const drain = ({ queues, pending }: (typeof lanes)[number]) => {
    const watermark = Math.min(...queues.map(([next]) => next?.seq ?? Number.POSITIVE_INFINITY));
    pending.sort((one, other) => one.number - other.number);
    while (pending.length > 0 && pending[0]!.number < watermark) persons.applyMerge(pending.shift()!);
  };
  for (;;) {
    const waiting = lanes.flatMap((lane) =>
      lane.queues.filter(({ length }) => length > 0).map((queue) => ({ lane, queue })),
    );
    if (waiting.length === 0) break;
    const { lane, queue } = waiting[random(waiting.length)]!;
    for (const event of queue.splice(0, 1 + random(4))) {
      const { seq: number, historical, timeMicros, uuid, distinctId } = event;
      const operations = getOperations(event);
      if (operations === undefined) {
        persons.recordAnonymous(distinctId, { number, historical });
        continue;
      }
      const { merge } = operations;
      const pending = merge && { number, historical, timeMicros, eventUuid: uuid, merge, distinctId };
      if (pending !== undefined && merges === "at-once") {
        persons.applyEvent(distinctId, [], { number, historical, timeMicros, uuid });
        persons.applyMerge(pending);
      } else if (pending !== undefined) lane.pending.push(pending);
      const writes = toWrites(event).map((write) =>
        forgetsTimes && historical ? { ...write, timeMicros: Number.POSITIVE_INFINITY } : write,
      );
      persons.applyEvent(distinctId, writes, { number, historical, timeMicros, uuid });
    }
    if (random(2) === 0) drain(lane);
  }
  for (const lane of lanes) drain(lane);
  const found = [...new Set(persons.persons.values())].map(
    (person): ShownPerson => ({
      uuid: person.uuid,
      main: person.mainDistinctId,
      identified: person.isIdentified,
      created: person.createdMicros,
      ids: ids.filter((id) => persons.persons.get(id) === person),
      properties: [...person.properties]
        .filter(([, { kind }]) => kind !== "unset")
        .map(([name, { text, realtimeMicros }]) => [name, text, realtimeMicros]),
    }),
  );
  return { outcome: shown(found, persons.rejected), persons };
}
