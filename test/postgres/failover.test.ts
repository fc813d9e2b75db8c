/** Several fronts on one PostgreSQL: what was acknowledged is stored once, whoever dies. */

import { mulberry32 } from "../support/crash-load.ts";
import { TestFronts, testWithFronts } from "../support/fronts.ts";
import { expectAllOnce, FrontLoad, stopMerges } from "../support/fronts-load.ts";

const test = testWithFronts("several fronts");
const seed = Number(process.env.FLAGKEEP_TEST_SEED) || Date.now() % 1_000_000;

test(`each front is killed in turn (seed ${seed})`, async () => {
  await using fronts = await TestFronts.start(3);
  await stopMerges(fronts);
  const load = new FrontLoad(fronts, mulberry32(seed));
  for (const number of [0, 1, 2]) {
    await load.further(500);
    await fronts.kill(number);
    await load.further(500);
    await fronts.startFront(number);
  }
  await load.stop();
  await expectAllOnce(fronts, load.log);
}, 120_000);
