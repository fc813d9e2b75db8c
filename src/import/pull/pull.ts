/**
 * Copies a PostHog project into a folder, from which it is imported like files: events, persons, groups, a document of
 * its flags and cohorts, and lists of its experiments, surveys and the like.
 *
 * Every page is a file; the position is recorded after each, so that an interrupted copy can be resumed.
 */

import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { FlagDocument } from "../../flags/import-export/document.ts";
import { posthogDocument } from "../../flags/import-export/vendors/posthog.ts";
import type { Json, JsonObject } from "../../lib/json/value.ts";
import { getId } from "../map/lenient-json.ts";
import { type PostHogApi, SourceRejectedError } from "./posthog-api.ts";

/** Without this file a copy starts from scratch. */
export const cursorName = "cursor.json";
const eventsPerPage = 1_000;
const personsPerPage = 500;
/** Page names sort in loading order, even when the newest page comes first. */
const pagesMax = 1e9;
/** Lists without archived objects, except by servers that do not know `archived`. */
const listsWithHidden = ["experiments"];
/** Servers compare times in milliseconds. */
const overlapMs = 1;

/** Position of the copy. */
interface Cursor {
  project: number;
  /** Completed parts. */
  done: string[];
  /** Of the current part: the next page, the number of pages, and the events of the last one. */
  next?: string;
  pages: number;
  lastIds: string[];
}

export interface PulledProject {
  /** Contains the pages: events before persons before groups, oldest first. */
  folder: string;
  flags: FlagDocument;
  /** Messages about cohorts with other names in `flags`, and about lists that the key may not read. */
  renamed: string[];
  /** Lists of the API by the last part of their path. */
  lists: Record<string, JsonObject[]>;
}

export interface PullOptions {
  /** Project on the copied server; undefined when the key has only one. */
  project: number | undefined;
  /** Only for this copy. */
  folder: string;
  isResumed: boolean;
  /** Further lists of the API to copy. */
  lists: readonly string[];
  /** Called with the number of records of each page. */
  onRecords: (what: string, count: number) => void;
}

/** @throws {SourceRejectedError} the copied part stays, for another run. */
export async function pullProject(api: PostHogApi, options: PullOptions): Promise<PulledProject> {
  return await new Pull(api, options).run();
}

class Pull {
  private cursor: Cursor;
  private readonly records: string;

  constructor(
    private readonly api: PostHogApi,
    private readonly options: PullOptions,
  ) {
    const { folder, isResumed } = options;
    if (!isResumed || readJson(join(folder, cursorName)) === undefined)
      rmSync(folder, { recursive: true, force: true });
    this.records = join(folder, "records");
    mkdirSync(this.records, { recursive: true, mode: 0o700 });
    this.cursor = readJson<Cursor>(this.cursorPath) ?? { project: 0, done: [], pages: 0, lastIds: [] };
  }

  async run(): Promise<PulledProject> {
    if (this.cursor.project === 0) {
      this.cursor.project = this.options.project ?? (await this.api.onlyProject());
      this.writeCursor();
    }
    await this.part("flags", () => this.flags());
    await this.part("lists", () => this.lists());
    await this.part("events", () => this.events());
    await this.part("persons", () => this.persons());
    await this.part("groups", () => this.groups());
    const { renamed = [], ...flags } = readJson<CopiedDocument>(this.flagsPath)!;
    const { unread, lists } = readJson<CopiedLists>(this.listsPath)!;
    return { folder: this.records, flags, renamed: [...renamed, ...unread], lists };
  }

  private get path(): string {
    return `api/projects/${this.cursor.project}`;
  }
  private get cursorPath(): string {
    return join(this.options.folder, cursorName);
  }
  private get flagsPath(): string {
    return join(this.options.folder, "flags.json");
  }

  private get listsPath(): string {
    return join(this.options.folder, "lists.json");
  }

  private async part(name: string, copy: () => Promise<void>): Promise<void> {
    if (this.cursor.done.includes(name)) return;
    await copy();
    const { project, done } = this.cursor;
    this.cursor = { project, done: [...done, name], pages: 0, lastIds: [] };
    this.writeCursor();
  }

  private async flags(): Promise<void> {
    const flags = await this.api.all(`${this.path}/feature_flags/?limit=200`);
    const cohorts = await this.api.all(`${this.path}/cohorts/?limit=200`);
    const { document, renamed } = posthogDocument({ flags, cohorts, groupTypes: await this.groupTypes() });
    writeAtomically(this.flagsPath, JSON.stringify({ ...document, renamed } satisfies CopiedDocument));
    this.options.onRecords("flags and cohorts", document.flags.length + document.cohorts.length);
  }

  /** A key or an older server may not have some of them. */
  private async lists(): Promise<void> {
    const copied: CopiedLists = { unread: [], lists: {} };
    for (const name of this.options.lists) {
      try {
        const found = await this.wholeList(name);
        copied.lists[name] = found;
        this.options.onRecords(name, found.length);
      } catch (error) {
        if (!(error instanceof SourceRejectedError) || !unreadableStatuses.includes(error.status ?? 0))
          throw error;
        copied.lists[name] = [];
        copied.unread.push(`Not taken over: ${error.message}`);
      }
    }
    writeAtomically(this.listsPath, JSON.stringify(copied));
  }

  /** A list with the archived objects that the server hides by default. */
  private async wholeList(name: string): Promise<JsonObject[]> {
    const first = `${this.path}/${name}/?limit=200`;
    const found = await this.api.all(first);
    if (!listsWithHidden.includes(name)) return found;
    const archived = await this.api.all(`${first}&archived=true`);
    return [...new Map([...found, ...archived].map((item) => [item.id, item])).values()];
  }

  /** Uses the order of arrival if the server supports it; other servers start with the newest. */
  private async events(): Promise<void> {
    // PostHog's default is to start with yesterday; its store has no events before this time.
    const first = `${this.path}/events/?limit=${eventsPerPage}&order=seq&after=1900-01-01T00:00:00Z`;
    for (let next: string | undefined = this.cursor.next ?? first; next !== undefined; ) {
      const page = await this.api.page(next);
      const before = new Set(this.cursor.lastIds);
      const fresh = page.results.filter(({ id }) => !before.has(String(id)));
      const isOldestFirst = page.results.every(({ seq }) => typeof seq === "number");
      const number = isOldestFirst ? this.cursor.pages : pagesMax - this.cursor.pages;
      this.writePage("1-events", number, isOldestFirst ? fresh : fresh.toReversed());
      // Events of the same millisecond may be on both sides of a page boundary; a page with only such events is
      // skipped.
      const again = withOverlap(page.next);
      const upTo: string | undefined = again === next ? page.next : again;
      next = upTo === next ? undefined : upTo;
      this.writeCursorAfter(
        next,
        page.results.map(({ id }) => String(id)),
      );
      this.options.onRecords("events", fresh.length);
    }
  }

  private async persons(): Promise<void> {
    await this.list(`${this.path}/persons/?limit=${personsPerPage}`, "2-persons", (person) => person);
  }

  private async groups(): Promise<void> {
    for (const { index, name } of await this.groupTypes()) {
      const path = `${this.path}/groups/?group_type_index=${index}`;
      await this.part(`groups of ${name}`, () =>
        this.list(path, `3-groups-${index}`, (group) => ({
          type: name,
          type_index: index,
          key: group.group_key ?? null,
          created_at: group.created_at ?? null,
          properties: group.group_properties ?? {},
        })),
      );
    }
  }

  private async list(first: string, name: string, map: (item: JsonObject) => JsonObject): Promise<void> {
    for (let next: string | undefined = this.cursor.next ?? first; next !== undefined; ) {
      const page = await this.api.page(next);
      this.writePage(name, this.cursor.pages, page.results.map(map));
      next = page.next === next ? undefined : page.next;
      this.writeCursorAfter(next, []);
      this.options.onRecords(name.replace(/^\d-|-\d+$/g, ""), page.results.length);
    }
  }

  private async groupTypes(): Promise<{ index: number; name: string }[]> {
    const types = await this.api.all(`${this.path}/groups_types/`);
    return types.flatMap(({ group_type, group_type_index }) => {
      const name = getId(group_type as Json);
      return name === undefined || typeof group_type_index !== "number"
        ? []
        : [{ index: group_type_index, name }];
    });
  }

  private writePage(name: string, number: number, records: readonly JsonObject[]): void {
    if (records.length === 0) return;
    const text = `${records.map((record) => JSON.stringify(record)).join("\n")}\n`;
    const file = `${name}-${String(number).padStart(10, "0")}.ndjson.zst`;
    writeAtomically(join(this.records, file), Bun.zstdCompressSync(text));
  }

  private writeCursorAfter(next: string | undefined, lastIds: string[]): void {
    const { project, done, pages } = this.cursor;
    this.cursor = { project, done, pages: pages + 1, lastIds, ...(next === undefined ? {} : { next }) };
    if (next !== undefined) this.writeCursor();
  }

  private writeCursor(): void {
    writeAtomically(this.cursorPath, JSON.stringify(this.cursor));
  }
}

/** Of a list that the key may not read, or that the server does not have. */
const unreadableStatuses = [401, 403, 404];

/** Lists by name, and messages about those that could not be read. */
interface CopiedLists {
  unread: string[];
  lists: Record<string, JsonObject[]>;
}

/** The document, and messages about cohorts that are renamed in it. */
interface CopiedDocument extends FlagDocument {
  renamed?: string[];
}

/** `before` slightly later: events at exactly this time are repeated instead of being skipped. */
function withOverlap(next: string | undefined): string | undefined {
  if (next === undefined) return undefined;
  const [path, query = ""] = next.split("?");
  const parameters = new URLSearchParams(query);
  const before = Date.parse(parameters.get("before") ?? "");
  if (Number.isNaN(before)) return next;
  parameters.set("before", new Date(before + overlapMs).toISOString());
  return `${path}?${parameters}`;
}

/** Writes atomically. */
function writeAtomically(path: string, content: string | Uint8Array): void {
  writeFileSync(`${path}.new`, content, { mode: 0o600, flush: true });
  renameSync(`${path}.new`, path);
}

function readJson<Value>(path: string): Value | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Value;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
