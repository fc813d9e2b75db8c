/** Which partitions an engine acquires, releases and requests, so that all are loaded and engines have equal shares. */

import { type PartitionState, partitionCount, type SeenPartition } from "./partitions.ts";

export interface PartitionPlan {
  /** Held, and requested by another engine. */
  release: number[];
  acquire: number[];
  /** Held by others. */
  request: number[];
}

const partitionBits = Math.log2(partitionCount);

/**
 * An order in which any first part is spread evenly over the numbers of partitions, and so over projects with consecutive
 * ids: the bits of the number, reversed.
 */
function spreadRank(id: number): number {
  let rank = 0;
  for (let bit = 0; bit < partitionBits; bit++) rank = (rank << 1) | ((id >> bit) & 1);
  return rank;
}

/** @param self ID of the engine, which is registered */
export function planPartitions(
  self: string,
  { loaders, partitions: unordered }: Pick<PartitionState, "loaders" | "partitions">,
): PartitionPlan {
  const partitions = unordered.toSorted((one, other) => spreadRank(one.id) - spreadRank(other.id));
  const alive = new Set(loaders.map(({ id }) => id));
  const isAlive = (id: string | null): id is string => id !== null && alive.has(id);
  const held = partitions.filter(({ holder }) => holder === self);
  const least = Math.floor(partitionCount / alive.size);
  const most = Math.ceil(partitionCount / alive.size);
  const release = held
    .filter(({ wanted }) => wanted !== self && isAlive(wanted))
    .slice(0, Math.max(0, held.length - least));
  const free = partitions.filter(({ holder }) => !isAlive(holder));
  const reserved = free.filter(({ wanted }) => wanted === self);
  const unreserved = free.filter(({ wanted }) => !isAlive(wanted));
  const capacity = most - held.length + release.length - reserved.length;
  const acquire = [...reserved, ...unreserved.slice(0, Math.max(0, capacity))];
  const requested = partitions.filter(
    ({ holder, wanted }) => holder !== self && wanted === self && isAlive(holder),
  );
  // What is already requested of an engine is not its own any more.
  const others = partitions.filter(
    ({ holder, wanted }) => holder !== self && isAlive(holder) && !isAlive(wanted),
  );
  const missing = least - (held.length - release.length) - acquire.length - requested.length;
  const ids = (some: readonly SeenPartition[]) => some.map(({ id }) => id);
  return {
    release: ids(release),
    acquire: ids(acquire),
    request: ids(fromLargest(others, missing, least)),
  };
}

/** Partitions to request, each from the engine that has the most at that point. */
function fromLargest(partitions: readonly SeenPartition[], count: number, least: number): SeenPartition[] {
  const shares = Map.groupBy(partitions, ({ holder }) => holder!);
  const movable = new Map(
    [...shares].map(([holder, share]) => [holder, share.filter(({ isSettled }) => isSettled)]),
  );
  const sizes = new Map([...shares].map(([holder, share]) => [holder, share.length]));
  const chosen: SeenPartition[] = [];
  while (chosen.length < count) {
    const [largest] = [...sizes]
      .filter(([holder, size]) => size > least && movable.get(holder)!.length > 0)
      .sort(([, one], [, other]) => other - one);
    if (largest === undefined) break;
    chosen.push(movable.get(largest[0])!.pop()!);
    sizes.set(largest[0], largest[1] - 1);
  }
  return chosen;
}
