/** What events tell about the use of flags. */

import { expect, test } from "bun:test";
import { FlagUsageTally } from "../../../src/engine/pipeline/flag-usage.ts";
import { event, newYearMicros, secondMicros } from "../../persons/support.ts";

test("a call has the time of its event, but none in the future", () => {
  const getCalls = (...times: number[]) => {
    const tally = new FlagUsageTally();
    tally.add(
      times.map((timeMicros) =>
        event({
          event: "$feature_flag_called",
          properties: { $feature_flag: "a" },
          timeMicros,
          receivedMicros: newYearMicros,
        }),
      ),
    );
    return tally.usage.flatMap(({ calls }) => calls);
  };
  const earlier = newYearMicros - secondMicros;
  expect(getCalls(earlier, earlier - secondMicros)).toEqual([{ key: "a", atMicros: earlier }]);
  const yearNineThousand = Date.UTC(9000, 0, 1) * 1000;
  expect(getCalls(earlier, yearNineThousand)).toEqual([{ key: "a", atMicros: newYearMicros }]);
});

test("a value longer than any key is ignored", () => {
  const tally = new FlagUsageTally();
  const longest = "k".repeat(400);
  tally.add(
    [longest, `${longest}k`].flatMap((key) => [
      event({ event: "$feature_flag_called", properties: { $feature_flag: key } }),
      event({ event: "$feature_view", properties: { feature_flag: key } }),
    ]),
  );
  expect(tally.usage).toMatchObject([{ calls: [{ key: longest }], views: [longest] }]);
  expect(tally.usage[0]!.calls).toHaveLength(1);
});
