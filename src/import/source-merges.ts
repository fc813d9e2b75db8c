/**
 * Users that were merged in the source: which of their distinct IDs become one person (contract, import 2.2, 2.11).
 *
 * Two users with a user ID each are never joined, neither by one row nor by a chain of rows. All rows are read before
 * the first link is created, so that their order does not affect the owner of an ID without a user.
 */

import { Database } from "bun:sqlite";
import type { LookupStore } from "./lookup-store.ts";
import { isPlaceholder } from "./map/identity.ts";
import { type MergeKind, sourceMerge } from "./map/lookups.ts";
import type { Pair, SourceUser } from "./map/mapped.ts";
import { toTime } from "./map/time.ts";
import type { Zone } from "./map/zone.ts";

/** Why a row of merges has no effect. */
export const mergeReasons = {
  unknown: "merge of unknown ids",
  users: "merge of two users",
  time: "merge without a readable time",
  unlinked: "merge without linking",
  ids: "lookup row without an id",
  placeholder: "merge of a placeholder id",
};
export const joinedReason = "joined lookup row";

/** The merges into one user of the source. */
export interface ResolvedMerge {
  /** Links of IDs without a user to the person that owns them from now on, and their time. */
  pairs: readonly Pair[];
  micros: number;
  /** Rows that name this user; they count as joined if a pair is linked or there is nothing to link. */
  rows: number;
  /** Rows without effect, by reason. */
  leftOut: readonly string[];
}

export interface MergeOptions {
  store: LookupStore;
  kind: MergeKind;
  /** The distinct IDs of a source user; empty when unknown. */
  idsOf: (id: string) => SourceUser["ids"];
  /** For times without a zone; absent: UTC. */
  zone?: Zone | undefined;
  nowMicros: number;
}

const schema = `
  CREATE TABLE node (
    id TEXT PRIMARY KEY,
    -- The node that has taken this one in; null for the root of a group.
    parent TEXT,
    -- A user id of the group; of its root alone.
    user_id TEXT,
    micros INTEGER,
    rows INTEGER NOT NULL DEFAULT 0
  ) WITHOUT ROWID;`;

interface Node {
  id: string;
  parent: string | null;
  user_id: string | null;
  micros: number | null;
  rows: number;
}

/** Yields first the rows without effect, then each merged user of the source, in a fixed order. */
export function* resolveMerges(options: MergeOptions): Generator<ResolvedMerge> {
  if (!options.store.has(options.kind)) return;
  // SQLite deletes an unnamed database with its connection.
  using database = new Database("", { create: true });
  database.run("PRAGMA synchronous = OFF");
  database.run(schema);
  const groups = new Groups(database, options);
  for (const row of options.store.getRows(options.kind)) {
    const reason = groups.add(sourceMerge(options.kind, row));
    if (reason !== undefined) yield { pairs: [], micros: 0, rows: 0, leftOut: [reason] };
  }
  yield* groups.resolve();
}

class Groups {
  constructor(
    private readonly database: Database,
    private readonly options: MergeOptions,
  ) {}

  /** Joins the groups of two source users. @returns why not. */
  add(merge: ReturnType<typeof sourceMerge>): string | undefined {
    if (merge === undefined) return mergeReasons.ids;
    const { zone, nowMicros } = this.options;
    const micros = toTime(merge.time, nowMicros, zone && { toInstant: zone, hasLocalNumbers: false });
    if (typeof micros !== "number") return mergeReasons.time;
    if (isPlaceholder(merge.from) || isPlaceholder(merge.into)) return mergeReasons.placeholder;
    const from = this.findRoot(merge.from);
    const into = this.findRoot(merge.into);
    if (from === undefined || into === undefined) return mergeReasons.unknown;
    const isOne = from.id === into.id;
    if (!isOne && from.user_id !== null && into.user_id !== null && from.user_id !== into.user_id)
      return mergeReasons.users;
    // The group without a user becomes part of the other one.
    const [child, parent] = into.user_id === null && from.user_id !== null ? [into, from] : [from, into];
    if (!isOne) this.write({ ...child, parent: parent.id, user_id: null, micros, rows: child.rows + 1 });
    const rows = parent.rows + (isOne ? 1 : 0);
    this.write({ ...parent, micros: parent.micros ?? micros, rows });
    return undefined;
  }

  *resolve(): Generator<ResolvedMerge> {
    const nodes = this.database.query<Node, []>("SELECT * FROM node ORDER BY id");
    for (const node of nodes.iterate()) {
      if (node.micros === null) continue;
      let root = node;
      while (root.parent !== null) root = this.getNode(root.parent)!;
      const target = root.user_id ?? this.options.idsOf(root.id)[0]?.distinctId;
      const others = this.options
        .idsOf(node.id)
        .filter(({ distinctId, isUser }) => !isUser && distinctId !== target)
        .map(({ distinctId }) => distinctId);
      const pairs = target === undefined ? [] : others.map((id): Pair => [id, target]);
      yield { pairs, micros: node.micros, rows: node.rows, leftOut: [] };
    }
  }

  /** The root of a user's group; undefined when unknown. */
  private findRoot(id: string): Node | undefined {
    let node = this.getNode(id);
    if (node === null) {
      const ids = this.options.idsOf(id);
      if (ids.length === 0) return undefined;
      const user = ids.find(({ isUser }) => isUser)?.distinctId ?? null;
      node = { id, parent: null, user_id: user, micros: null, rows: 0 };
      this.write(node);
    }
    const path: Node[] = [];
    while (node.parent !== null) {
      path.push(node);
      node = this.getNode(node.parent)!;
    }
    // Path compression: shortens the next search.
    for (const each of path) if (each.parent !== node.id) this.write({ ...each, parent: node.id });
    return node;
  }

  private getNode(id: string): Node | null {
    return this.database.query<Node, [string]>("SELECT * FROM node WHERE id = ?").get(id);
  }

  private write({ id, parent, user_id, micros, rows }: Node): void {
    this.database
      .query("INSERT OR REPLACE INTO node VALUES (?, ?, ?, ?, ?)")
      .run(id, parent, user_id, micros, rows);
  }
}
