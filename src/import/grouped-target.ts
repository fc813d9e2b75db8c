/**
 * Groups concurrent lookups and batches of many small files: an archive may contain tens of thousands of them, and a
 * lookup for each would take minutes.
 */

import type { PersonLanes, StoredEvent } from "../events/duckdb/known-uuids.ts";
import type { ImportLimits } from "./control-route.ts";
import type { LivePersons } from "./device-owners.ts";
import type { ImportClient } from "./import-client.ts";

/** Concurrent lookups: waiting ones are combined into one. */
const questionsMax = 4;
/** Per lookup, unless one batch has more. */
const textsMax = 10_000;
/** Sent in one request, unless one batch alone has more. */
const bytesMax = 8 * 1024 * 1024;

interface Batch {
  requests: Uint8Array;
  sent: PromiseWithResolvers<void>;
}

/** Lookups of strings: a few run concurrently, and waiting ones are combined. */
class GroupedQuestions<Answer> {
  private waiting: { texts: string[]; answer: PromiseWithResolvers<Answer> }[] = [];
  private request = 0;

  /** @param question performs a lookup of several strings. */
  constructor(private readonly question: (texts: string[]) => Promise<Answer>) {}

  ask(texts: string[]): Promise<Answer> {
    const answer = Promise.withResolvers<Answer>();
    this.waiting.push({ texts, answer });
    if (this.request < questionsMax) void this.sendQuestions();
    return answer.promise;
  }

  private async sendQuestions(): Promise<void> {
    this.request += 1;
    while (this.waiting.length > 0) {
      const group = takeGroup(this.waiting, ({ texts }) => texts.length, textsMax);
      try {
        const answered = await this.question(group.flatMap(({ texts }) => texts));
        for (const { answer } of group) answer.resolve(answered);
      } catch (error) {
        for (const { answer } of group) answer.reject(error);
      }
    }
    this.request -= 1;
  }
}

/** An import client that accepts concurrent calls, and passes on waiting ones as a group, in order. */
export class GroupedTarget implements ImportClient {
  private readonly uuids: GroupedQuestions<ReadonlySet<string>>;
  private readonly persons: GroupedQuestions<LivePersons>;
  private batches: Batch[] = [];
  private isSending = false;
  /** After the first failed batch all later ones fail. */
  private failure: { error: unknown } | undefined;

  constructor(private readonly target: ImportClient) {
    this.uuids = new GroupedQuestions((uuids) => target.knownUuids(uuids));
    this.persons = new GroupedQuestions((distinctIds) => target.personsOf(distinctIds));
  }

  limits(): Promise<ImportLimits> {
    return this.target.limits();
  }

  knownUuids(uuids: string[]): Promise<ReadonlySet<string>> {
    return this.uuids.ask(uuids);
  }

  personsOf(distinctIds: string[]): Promise<LivePersons> {
    return this.persons.ask(distinctIds);
  }

  hasHistory(): Promise<boolean> {
    return this.target.hasHistory();
  }

  storedEvents(uuids: string[]): Promise<StoredEvent[]> {
    return this.target.storedEvents(uuids);
  }

  importedPersons(distinctIds: string[]): Promise<PersonLanes[]> {
    return this.target.importedPersons(distinctIds);
  }

  deletePerson(uuid: string): Promise<void> {
    return this.target.deletePerson(uuid);
  }

  settled(): Promise<void> {
    return this.target.settled();
  }

  send(requests: Uint8Array): Promise<void> {
    const sent = Promise.withResolvers<void>();
    this.batches.push({ requests, sent });
    if (!this.isSending) void this.sendAll();
    return sent.promise;
  }

  lastSeq(): Promise<number> {
    return this.target.lastSeq();
  }

  waitUntilLoaded(seq: number): Promise<void> {
    return this.target.waitUntilLoaded(seq);
  }

  private async sendAll(): Promise<void> {
    this.isSending = true;
    while (this.batches.length > 0) {
      const group = takeGroup(this.batches, ({ requests }) => requests.length, bytesMax);
      try {
        if (this.failure !== undefined) throw this.failure.error;
        const [first] = group;
        await this.target.send(
          group.length === 1 ? first!.requests : Buffer.concat(group.map(({ requests }) => requests)),
        );
        for (const { sent } of group) sent.resolve();
      } catch (error) {
        this.failure ??= { error };
        for (const { sent } of group) sent.reject(error);
      }
    }
    this.isSending = false;
  }
}

/** Removes the first item, and further ones while they fit. */
function takeGroup<Item>(items: Item[], getSize: (item: Item) => number, sizeMax: number): Item[] {
  let size = 0;
  let count = 0;
  for (const item of items) {
    size += getSize(item);
    if (count > 0 && size > sizeMax) break;
    count += 1;
  }
  return items.splice(0, count);
}
