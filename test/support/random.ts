/**
 * Loaded before all tests (bunfig.toml): property-based tests try the same cases in every run, so that what a run says
 * depends on the sources alone. `make test-random` tries new and more cases.
 *
 * FLAGKEEP_TEST_SEED: a number, or `random`. FLAGKEEP_TEST_RUNS: how many times the usual number of cases; such tests name no
 * time of their own, which the command gives them (`--timeout`).
 */

import { mock } from "bun:test";
import fc from "fast-check";

const asked = process.env.FLAGKEEP_TEST_SEED ?? "20261121";
const seed = asked === "random" ? undefined : Number(asked);
const times = Number(process.env.FLAGKEEP_TEST_RUNS ?? 1);
const defaultRuns = 100;

const check: typeof fc.assert = fc.assert;
const assert = ((property: never, parameters: { numRuns?: number; seed?: number } = {}) =>
  check(property, {
    ...(seed === undefined ? {} : { seed }),
    ...parameters,
    numRuns: (parameters.numRuns ?? defaultRuns) * times,
  })) as typeof fc.assert;

mock.module("fast-check", () => ({ ...fc, assert, default: { ...fc, assert } }));
