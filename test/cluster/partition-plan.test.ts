/** Who loads which partitions: all are held, shares are equal, and nothing moves more often than it has to. */

import { describe, expect, test } from "bun:test";
import { planPartitions } from "../../src/cluster/partition-plan.ts";
import { partitionCount, type SeenPartition } from "../../src/cluster/partitions.ts";
import { mulberry32 } from "../support/crash-load.ts";

const settledTicks = 20;

/** Engines that plan in turn, without a database. */
class Simulation {
  private tick = 0;
  readonly alive = new Set<string>();
  readonly moves: { id: number; tick: number }[] = [];
  private readonly movedAt = new Map<number, number>();
  readonly partitions: SeenPartition[] = Array.from({ length: partitionCount }, (_, id) => ({
    id,
    holder: null,
    wanted: null,
    isSettled: true,
  }));

  run(ticks: number): void {
    for (let count = 0; count < ticks; count++) {
      this.tick += 1;
      for (const engine of this.alive) this.plan(engine);
    }
  }

  private plan(self: string): void {
    const isSettled = (id: number) => this.tick - (this.movedAt.get(id) ?? -settledTicks) >= settledTicks;
    const partitions = this.partitions.map((each) => ({ ...each, isSettled: isSettled(each.id) }));
    const loaders = [...this.alive].map((id) => ({ id, beat: "" }));
    const { acquire, release, request } = planPartitions(self, { loaders, partitions });
    for (const id of release) this.partitions[id]!.holder = null;
    for (const id of request) this.partitions[id]!.wanted = self;
    for (const id of acquire) {
      expect(this.alive.has(this.partitions[id]!.holder ?? "")).toBe(false);
      Object.assign(this.partitions[id]!, { holder: self, wanted: null });
      this.movedAt.set(id, this.tick);
      this.moves.push({ id, tick: this.tick });
    }
  }

  /** How many partitions each engine holds, smallest first. */
  get shares(): number[] {
    const count = (self: string) => this.partitions.filter(({ holder }) => holder === self).length;
    return [...this.alive].map(count).sort((one, other) => one - other);
  }
}

function started(engines: number): Simulation {
  const simulation = new Simulation();
  for (let number = 0; number < engines; number++) {
    simulation.alive.add(`engine-${number}`);
    simulation.run(3 * settledTicks);
  }
  return simulation;
}

describe("partitions", () => {
  test.each([
    [1, [64]],
    [2, [32, 32]],
    [3, [21, 21, 22]],
    [5, [12, 13, 13, 13, 13]],
  ])("of %d engines are shared equally", (engines, shares) => {
    expect(started(engines).shares).toEqual(shares);
  });

  test("of two engines alternate, so that projects with consecutive ids are spread", () => {
    const { partitions } = started(2);
    for (const { id, holder } of partitions) expect(holder).not.toBe(partitions[id ^ 1]!.holder);
  });

  test("move once when an engine joins", () => {
    const simulation = started(2);
    simulation.moves.length = 0;
    simulation.alive.add("new");
    simulation.run(3 * settledTicks);
    expect(simulation.moves.length).toBe(21);
    expect(new Set(simulation.moves.map(({ id }) => id)).size).toBe(21);
  });

  test("of an engine that ends are acquired immediately, also if others were requested for it", () => {
    const simulation = started(3);
    simulation.alive.add("new");
    // Pending requests.
    simulation.run(1);
    simulation.alive.delete("new");
    simulation.alive.delete("engine-1");
    simulation.run(3);
    expect(simulation.shares).toEqual([32, 32]);
  });

  test("are all held, and every engine has its share, whatever joins and ends", () => {
    const random = mulberry32(38);
    for (let round = 0; round < 30; round++) {
      const simulation = new Simulation();
      for (let event = 0; event < 12; event++) {
        const alive = [...simulation.alive];
        if (alive.length < 2 || random() < 0.6) simulation.alive.add(`${round} ${event}`);
        else simulation.alive.delete(alive[Math.floor(random() * alive.length)]!);
        simulation.run(Math.floor(random() * 2 * settledTicks));
      }
      simulation.run(6 * settledTicks);
      const { shares } = simulation;
      expect(shares.reduce((sum, share) => sum + share, 0)).toBe(partitionCount);
      expect(shares[0]).toBeGreaterThanOrEqual(Math.floor(partitionCount / shares.length));
    }
  });
});
