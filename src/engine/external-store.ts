/** Opens the stores of an engine with an external event store, and optionally a cluster's person store. */

import { LeaseLostError } from "../cluster/lease.ts";
import type { ClickHouseAddress } from "../lib/store-urls.ts";
import { paths } from "../paths.ts";
import { assertExternalEvents } from "../persons/external-events.ts";
import { openPersons } from "../persons/open.ts";
import { ClickHouseBackend } from "./clickhouse-backend.ts";
import { ClusterPersons } from "./cluster-persons.ts";
import type { FatalErrorHandler } from "./fatal-errors.ts";
import type { EngineStart } from "./messages.ts";
import { pinnedProperties } from "./pinned-properties.ts";
import { availabilityLogger, report, reportSync } from "./report.ts";
import { getCache, getPersonStore } from "./stores.ts";

/** Opens the person store, and the backend and loader of the external event store. @throws {ExternalEventsError} */
export async function openExternalStore(
  start: EngineStart,
  address: ClickHouseAddress,
  fatalErrors: FatalErrorHandler,
) {
  let outside: ClickHouseBackend | undefined;
  const db = openPersons(paths(start.dataDir).people, getCache(start));
  const shared: ClusterPersons | undefined =
    start.cluster === null
      ? undefined
      : await ClusterPersons.open(db, start.cluster, {
          onUnavailable: availabilityLogger("the cluster"),
          onAcquired: () => outside?.recordLoaded(),
          assertNotAhead: async (isWanted) => await outside?.assertNotAhead(isWanted),
          onFree: () => restart("no node has the lease"),
          onPaused: () => restart("loading is paused"),
          onFatal: (error) =>
            error instanceof LeaseLostError ? restart("another node has the lease") : fatalErrors.die(error),
        });
  const people = getPersonStore(start, db);
  if (shared === undefined)
    assertExternalEvents(people.db, people.cursor("realtime") + people.cursor("historical") > 0);
  outside = new ClickHouseBackend(
    address,
    people.db,
    {
      queryTimeoutMs: start.queryTimeoutMs,
      columnsMax: start.propertyColumnsMax,
      pinned: () => pinnedProperties(people.db),
      isReader: shared?.isCoordinator === false,
      ...(shared?.rows === undefined ? {} : { persons: shared.rows.source }),
      ...(shared?.progress === undefined ? {} : { progress: shared.progress }),
      ...(shared?.loaded === undefined ? {} : { loaded: shared.loaded }),
    },
    {
      onAway: availabilityLogger("the events"),
      onPromoted: (promoted) => report({ type: "properties", promoted }),
      settle: shared && (() => shared.settle()),
      ...(shared?.fence === undefined ? {} : { fence: shared.fence }),
      around: shared && ((copies) => shared.aroundCopies(copies)),
    },
  );
  const { events } = outside;
  const follow = () => outside.follow();
  return { people, events, outside, shared, follow };
}

/** The cluster's loader has changed: restart this process in its new role. */
function restart(reason: string): never {
  reportSync({ type: "changes_role", reason });
  process.exit(0);
}
