import { expect, test } from "bun:test";
import { EventRate } from "../../src/operate/event-rate.ts";

test("the rate is that of the last ten seconds", () => {
  let count = 0;
  const rate = new EventRate(() => count);
  expect(rate.perSecond(0)).toBe(0);
  rate.sample(0);
  expect(rate.perSecond(0)).toBe(0);
  count = 50;
  expect(rate.perSecond(500)).toBe(100);
  for (let second = 1; second <= 30; second++) {
    count += 7;
    rate.sample(second * 1_000);
  }
  expect(rate.perSecond(30_000)).toBe(7);
  for (let second = 31; second <= 40; second++) rate.sample(second * 1_000);
  expect(rate.perSecond(40_000)).toBe(0);
});
