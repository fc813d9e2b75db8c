/**
 * Fences off the inserts of a node that lost its lease: ClickHouse itself rejects an insert that arrives after its
 * deadline, by its own clock. A paused process or a slow network cannot deliver rows that another node has loaded.
 */

import type { ClickHouseConnection } from "./connection.ts";

/** Of the node that holds the lease; times are those of `performance.now`. */
export interface InsertFence {
  /** Until when no other node loads. */
  until(): number;
  /** When the last insert of the previous node has been stored or rejected. */
  readonly previousEnd: number;
}

/** Before the end of the lease. */
const marginMs = 500;
/** An insert with less time waits until the lease is renewed. */
const leftMsMin = 1_500;
/** `throwIf` in an insert whose deadline has passed. */
export const lateInsertCode = "395";

/**
 * A condition that is true, or fails the insert if it arrives after the deadline.
 * @returns undefined: the lease has to be renewed first @throws {ClickHouseUnreachableError}
 */
export async function deadlineCondition(
  connection: ClickHouseConnection,
  fence: InsertFence,
): Promise<string | undefined> {
  const [[now] = []] = await connection.rows("SELECT toUnixTimestamp64Micro(now64(6))");
  // Counted from the end of the round trip, so that the deadline is never late.
  const leftMs = fence.until() - marginMs - performance.now();
  if (leftMs < leftMsMin) return undefined;
  // `nowInBlock` is in whole seconds and, unlike `now`, read for each block.
  const seconds = Math.floor((Number(now) / 1_000 + leftMs) / 1_000);
  return `throwIf(toUnixTimestamp(nowInBlock('UTC')) >= ${seconds}, 'flagkeep: late insert') = 0`;
}
