/** Opens the stores of an engine whose events are in a server, and its persons perhaps too. */

import type { ClickHouseAddress } from "../lib/clickhouse-address.ts";
import { paths } from "../paths.ts";
import { openPeople } from "../people/open.ts";
import { requireEventsOutside } from "../people/outside-events.ts";
import { LeaseLost } from "../postgres/lease.ts";
import { ClickHouseBackend } from "./clickhouse-backend.ts";
import type { Faults } from "./faults.ts";
import type { EngineStart } from "./messages.ts";
import { awayTeller, report, reportLast } from "./report.ts";
import { SharedPeople } from "./shared-people.ts";
import { cacheOf, peopleStoreOf } from "./stores.ts";

/** Opens the store of persons, and what loads events into a server and asks it there. @throws {EventsElsewhere} */
export async function openOutside(start: EngineStart, address: ClickHouseAddress, faults: Faults) {
  let outside: ClickHouseBackend | undefined;
  const db = openPeople(paths(start.dataDir).people, cacheOf(start));
  const shared: SharedPeople | undefined =
    start.shared === null
      ? undefined
      : await SharedPeople.open(db, start.shared, {
          onAway: awayTeller("what the fronts share"),
          onTaken: () => outside?.noteLoaded(),
          onFree: beginAnew,
          onFatal: (error) => (error instanceof LeaseLost ? beginAnew() : faults.die(error)),
        });
  const people = peopleStoreOf(start, db);
  if (shared === undefined)
    requireEventsOutside(people.db, people.cursor("realtime") + people.cursor("historical") > 0);
  outside = new ClickHouseBackend(
    address,
    people.db,
    {
      queryTimeoutMs: start.queryTimeoutMs,
      columnsMax: start.propertyColumnsMax,
      isReader: shared?.isLoader === false,
    },
    {
      onAway: awayTeller("the events"),
      onPromoted: (promoted) => report({ type: "properties", promoted }),
      settle: shared && (() => shared.settle()),
      around: shared && ((copies) => shared.aroundCopies(copies)),
    },
  );
  const { events } = outside;
  const follow = () => outside.follow();
  return { people, events, outside, shared, follow };
}

/** Which of the fronts loads events has changed: the next process is made for what this one is now. */
function beginAnew(): never {
  reportLast({ type: "takes_over" });
  process.exit(0);
}
