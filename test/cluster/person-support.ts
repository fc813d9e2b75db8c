/** Persons of a node, without the node. */

import { join } from "node:path";
import type { Postgres } from "../../src/cluster/connection.ts";
import { StoreReplica } from "../../src/cluster/store-replica.ts";
import { ClusterPersons } from "../../src/engine/cluster-persons.ts";
import { openPersons, type PersonsDb, personStore } from "../../src/persons/open.ts";
import { temporaryFolder } from "../support/server.ts";

/** Creates and opens a replica of the person store. */
export async function openReplica(postgres: Postgres, folder = temporaryFolder()): Promise<PersonsDb> {
  const path = join(folder, "people.sqlite");
  await StoreReplica.prepare(path, personStore, postgres);
  return openPersons(path);
}

/** Opens the persons of a new node on a replica; its callbacks do nothing. */
export async function openClusterPersons(db: PersonsDb, { address }: Postgres): Promise<ClusterPersons> {
  const ignore = () => undefined;
  return await ClusterPersons.open(
    db,
    { postgres: address, node: crypto.randomUUID() },
    {
      onUnavailable: ignore,
      onAcquired: ignore,
      assertNotAhead: async () => undefined,
      onFree: ignore,
      onPaused: ignore,
      onFatal: ignore,
    },
  );
}
