/**
 * Commands about flags, keys, projects and users where several fronts share them: the command works on a copy, as it does on
 * a data directory, while no front changes anything; what it has changed is everybody's when it ends.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { metadataStore } from "../src/accounts/db.ts";
import { postgresAddress } from "../src/config.ts";
import { newPayloadKey, writePayloadKey } from "../src/flags/store/payload-cipher.ts";
import { openSqlite } from "../src/lib/sqlite/open.ts";
import { paths } from "../src/paths.ts";
import { Postgres } from "../src/postgres/connection.ts";
import { sharedSecret } from "../src/postgres/fronts.ts";
import { migratePostgres } from "../src/postgres/schema.ts";
import { StoreCopy } from "../src/postgres/store-copy.ts";
import { payloadKeyName, requireOwnData } from "../src/serve/shared-front.ts";
import { configOf, dataDirOf, withSettings } from "./settings.ts";

/** Those that read and change nothing but the store of metadata. */
const sharedCommands = [
  ...["init", "flags", "keys", "projects", "users", "members", "roles", "cohorts", "organization"],
];
const connections = 2;

interface Session {
  folder: string;
  postgres: Postgres;
  /** Ends the change: it is committed then. */
  finish: () => void;
  changing: Promise<void>;
}

let session: Session | undefined;

/** Lets the commands that can work for all fronts be told where these have their data. */
export function withSharedSettings(program: Command): void {
  for (const command of program.commands.filter((each) => sharedCommands.includes(each.name()))) {
    for (const leaf of leavesOf(command)) {
      const longs = leaf.options.map(({ long }) => long);
      if (longs.includes("--data-dir") && !longs.includes("--postgres-url"))
        withSettings(leaf, ["postgres-url", "postgres-password-file"]);
    }
  }
}

/**
 * Brings the store of all fronts here, when the command works on it.
 *
 * @returns whether it does. @throws {OnlyCopies} it should, but is not told where it is.
 * @throws {PostgresUnreachable} @throws {PostgresRefuses}
 */
export async function beginShared(command: Command): Promise<boolean> {
  if (!isShared(command)) return false;
  const options = command.opts();
  const address = postgresAddress(configOf(options), process.env);
  if (address === null) {
    requireOwnData(dataDirOf(options));
    return false;
  }
  const folder = mkdtempSync(join(tmpdir(), "flagkeep-command-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  const postgres = new Postgres(address, { connections, name: "command" });
  await migratePostgres(postgres);
  const place = paths(folder);
  await StoreCopy.prepare(place.metadata, metadataStore, postgres);
  const key = await sharedSecret(postgres, payloadKeyName, newPayloadKey());
  writePayloadKey(place.payloadKey, Buffer.from(key, "base64"));
  const copy = StoreCopy.attach(openSqlite(place.metadata, {}).$client, metadataStore, postgres);
  const begun = Promise.withResolvers<void>();
  const done = Promise.withResolvers<void>();
  const changing = copy.change(() => {
    begun.resolve();
    return done.promise;
  });
  await Promise.race([begun.promise, changing]);
  session = { folder, postgres, finish: done.resolve, changing };
  command.setOptionValue("dataDir", folder);
  return true;
}

/** What the command has changed is everybody's when this resolves. @throws {PostgresUnreachable} it may not be. */
export async function endShared(): Promise<void> {
  if (session === undefined) return;
  const { postgres, finish, changing } = session;
  finish();
  await changing;
  await postgres.close();
}

function isShared(command: Command): boolean {
  let top = command;
  while (top.parent?.parent) top = top.parent;
  const usesStore = command.options.some(({ long, hidden }) => long === "--data-dir" && !hidden);
  return usesStore && sharedCommands.includes(top.name());
}

function leavesOf(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf);
}
