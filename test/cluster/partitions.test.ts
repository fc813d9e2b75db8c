/**
 * The rules by which several engines load partitions, on a model: with all guards no entry is lost, stored or applied
 * twice; without any of three guards the same model finds faults, so that it can see them.
 */

import { expect, test } from "bun:test";
import { allGuards, type Faults, type Guard, runCluster } from "./partition-model.ts";

const seed = Number(process.env.FLAGKEEP_TEST_SEED) || Date.now() % 1_000_000;
const clusters = Number(process.env.FLAGKEEP_TEST_MODEL_RUNS ?? 40);
/** Fixed, so that the controls find the same faults each time. */
const controlSeed = 1;
const controls = 200;
const none: Faults = { storedTwice: 0, lost: 0, appliedTwice: 0, notApplied: 0, disordered: 0 };

test("with all guards every entry is stored and applied once, in order", () => {
  let takeovers = 0;
  let givenBack = 0;
  for (let run = 0; run < clusters; run++) {
    const found = runCluster(seed + run, allGuards);
    expect({ seed: seed + run, ...found.faults }).toEqual({ seed: seed + run, ...none });
    takeovers += found.takeovers;
    givenBack += found.givenBack;
  }
  // Otherwise the model tries nothing.
  expect(givenBack).toBeGreaterThan(5 * clusters);
  expect(takeovers - givenBack).toBeGreaterThan(5 * clusters);
}, 120_000);

/** Which faults a guard prevents. */
const prevented: [Guard, (keyof Faults)[]][] = [
  ["safe number", ["lost", "notApplied"]],
  ["deadline", ["storedTwice"]],
  ["wait", ["storedTwice"]],
];
for (const [guard, kinds] of prevented)
  test(`without the ${guard}: ${kinds.join(" and ")}`, () => {
    const guards = allGuards.filter((each) => each !== guard);
    for (let run = 0; run < controls; run++) {
      const { faults } = runCluster(controlSeed + run, guards);
      if (kinds.every((kind) => faults[kind] > 0)) return;
    }
    throw new Error(`${controls} runs without it found nothing.`);
  }, 120_000);
