/** Random histories: whatever the batches and restarts, the store must hold what the model says. */

import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import type { JournalEvent } from "../../src/journal/entry.ts";
import { changesAfter, pruneChanges } from "../../src/persons/changes.ts";
import { addCohortMembers, cohortsOfPerson } from "../../src/persons/cohort-members.ts";
import { addHashKeyOverrides, hashKeyOverrides } from "../../src/persons/hash-key-overrides.ts";
import { getDistinctIds, personsPage } from "../../src/persons/reader.ts";
import { Model, type ShownPerson } from "./model.ts";
import { event, secondMicros, TestPersons } from "./support.ts";

const ids = fc.constantFrom("a", "b", "c", "d", "e", "f");
const times = fc.integer({ min: 1, max: 6 });
const values = fc.dictionary(fc.constantFrom("p", "q", "r"), fc.integer({ min: 0, max: 2 }), { maxKeys: 2 });

const change = fc.record(
  { $set: values, $set_once: values, $unset: fc.array(fc.constantFrom("p", "q", "r"), { maxLength: 2 }) },
  { requiredKeys: [] },
);
const kinds = fc.oneof(
  fc.record({ event: fc.constant("seen"), partner: fc.constant(undefined) }),
  fc.record({ event: fc.constantFrom("$identify", "$create_alias", "$merge_dangerously"), partner: ids }),
);

interface Step {
  kind: { event: string; partner: string | undefined };
  distinctId: string;
  timeMicros: number;
  historical: boolean;
  /** Sent with `$process_person_profile: false`. */
  isPersonless: boolean;
  change: Record<string, unknown>;
  /** The batch ends behind this event. */
  endsBatch: boolean;
  restarts: boolean;
  /** Before the batch of this event: the person of this id joins a cohort and gets an override. */
  joins: string | undefined;
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: kinds,
  distinctId: ids,
  timeMicros: times,
  historical: fc.boolean(),
  isPersonless: fc.integer({ min: 0, max: 3 }).map((n) => n === 0),
  change,
  endsBatch: fc.boolean(),
  restarts: fc.boolean(),
  joins: fc.option(ids, { nil: undefined, freq: 4 }),
});

function toEvent(
  { kind, distinctId, timeMicros, historical, isPersonless, change }: Step,
  projectId: number,
): JournalEvent {
  const partner = kind.event === "$identify" ? { $anon_distinct_id: kind.partner } : { alias: kind.partner };
  const properties = kind.partner === undefined ? change : { ...partner, ...change };
  const mode = isPersonless ? "propertyless" : "full";
  return event({ projectId, event: kind.event, distinctId, timeMicros, historical, mode, properties });
}

let people: TestPersons;
let projectId = 0;

beforeAll(() => {
  people = new TestPersons();
});
afterAll(() => people[Symbol.dispose]());

function shown(): ShownPerson[] {
  const persons = personsPage(people.db, projectId);
  const idLists = getDistinctIds(people.db, persons);
  return persons
    .map(({ id, uuid, isIdentified, createdMicros, properties }) => ({
      uuid,
      ids: idLists.get(id)!,
      identified: isIdentified,
      created: createdMicros,
      properties,
      cohorts: [...cohortsOfPerson(people.db, id)].sort(),
      overrides: Object.fromEntries(hashKeyOverrides(people.db, projectId, [idLists.get(id)![0]!])),
    }))
    .sort((a, b) => (a.uuid < b.uuid ? -1 : 1));
}

/** What a mirror knows that only ever saw the changes. */
class Mirror {
  owners = new Map<string, string>();
  persons = new Set<string>();
  private last = 0;

  follow(): void {
    for (const change of changesAfter(people.db, this.last, 1_000)) {
      if (change.kind === "distinct_id") this.owners.set(change.distinctId, change.personUuid);
      if (change.kind === "person_deleted") this.persons.delete(change.personUuid);
      else this.persons.add(change.personUuid);
      this.last = change.changeId;
    }
    pruneChanges(people.db, this.last);
  }
}

function joinCohort(model: Model, id: string, number: number): void {
  addCohortMembers(people.db, projectId, number, { distinctIds: [id] });
  // Some were requested nearly five minutes ago: events that follow come in time, or late.
  const requestedMicros = event().receivedMicros - (number % 3) * 164 * secondMicros;
  const hashKey = `${number}`;
  addHashKeyOverrides(people.db, projectId, {
    distinctIds: [id],
    flagKeys: ["flag"],
    hashKey,
    requestedMicros,
  });
  const person = model.of(id);
  person?.cohorts.push(number);
  if (person !== undefined) person.overrides = { flag: hashKey, ...person.overrides };
  else {
    const before = model.pending.get(id);
    const isValid = before !== undefined && before.requestedMicros >= requestedMicros - 330 * secondMicros;
    model.pending.set(id, {
      hashKey: isValid ? before.hashKey : hashKey,
      requestedMicros: Math.max(requestedMicros, before?.requestedMicros ?? 0),
    });
  }
}

function check(steps: Step[]): void {
  projectId += 1;
  const model = new Model();
  const mirror = new Mirror();
  let batch: JournalEvent[] = [];
  const flush = () => {
    if (batch.length > 0) people.apply(...batch);
    batch = [];
    mirror.follow();
  };
  steps.forEach((step, index) => {
    if (batch.length > 0 && (batch[0]!.historical !== step.historical || step.joins !== undefined)) flush();
    if (step.joins !== undefined) joinCohort(model, step.joins, index + 1);
    const item = toEvent(step, projectId);
    batch.push(item);
    model.apply(item);
    if (!step.endsBatch) return;
    flush();
    if (step.restarts) people.reopen();
    expect(shown()).toEqual(model.shown());
  });
  flush();
  people.reopen();
  const expected = model.shown();
  expect(shown()).toEqual(expected);
  expect(mirror.owners).toEqual(new Map(expected.flatMap(({ uuid, ids }) => ids.map((id) => [id, uuid]))));
  expect(mirror.persons).toEqual(new Set(expected.map(({ uuid }) => uuid)));
}

test("any history has the model's result, however it is split into batches", () => {
  fc.assert(fc.property(fc.array(step, { minLength: 1, maxLength: 30 }), check), { numRuns: 250 });
});

test("an alias stays the main id, also one that was it before and is stored in a batch that changes nothing else", () => {
  const steps = [
    { kind: { event: "$identify", partner: "e" }, distinctId: "a" },
    { kind: { event: "$create_alias", partner: "a" }, distinctId: "e" },
    { kind: { event: "$identify", partner: "a" }, distinctId: "d" },
  ];
  check(
    steps.map((step) => ({
      ...step,
      timeMicros: 1,
      historical: false,
      isPersonless: false,
      change: {},
      endsBatch: true,
      restarts: true,
      joins: undefined,
    })),
  );
});
