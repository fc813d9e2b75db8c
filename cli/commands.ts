/** The tree of commands: one file per command under `commands/`, read when it is needed. */

import type { Command } from "commander";
import { programOf } from "./program.ts";

/** In the order in which help lists them. */
const loaders: Record<string, () => Promise<Command>> = {
  serve: async () => (await import("./commands/serve.ts")).serve,
  init: async () => (await import("./commands/init.ts")).init,
  flags: async () => (await import("./commands/flags.ts")).flags,
  keys: async () => (await import("./commands/keys.ts")).keys,
  projects: async () => (await import("./commands/projects.ts")).projects,
  users: async () => (await import("./commands/users.ts")).users,
  members: async () => (await import("./commands/members.ts")).members,
  roles: async () => (await import("./commands/roles.ts")).roles,
  cohorts: async () => (await import("./commands/cohorts.ts")).cohorts,
  persons: async () => (await import("./commands/persons.ts")).persons,
  organization: async () => (await import("./commands/organization.ts")).organization,
  query: async () => (await import("./commands/query.ts")).query,
  status: async () => (await import("./commands/status.ts")).status,
  top: async () => (await import("./commands/top.ts")).top,
  usage: async () => (await import("./commands/usage.ts")).usage,
  warnings: async () => (await import("./commands/warnings.ts")).warnings,
  healthcheck: async () => (await import("./commands/healthcheck.ts")).healthcheck,
  migrate: async () => (await import("./commands/migrate.ts")).migrate,
  "migrate-events": async () => (await import("./commands/migrate-events.ts")).migrateEvents,
  "migrate-to-cluster": async () => (await import("./commands/migrate-to.ts")).migrateTo,
  "migrate-from-cluster": async () => (await import("./commands/migrate-to.ts")).migrateFrom,
  doctor: async () => (await import("./commands/doctor.ts")).doctor,
  scrub: async () => (await import("./commands/scrub.ts")).scrub,
  mcp: async () => (await import("./commands/mcp.ts")).mcp,
  completions: async () => (await import("./commands/completions.ts")).completions,
  export: async () => (await import("./commands/export.ts")).exportData,
  import: async () => (await import("./commands/import.ts")).importEvents,
  backup: async () => (await import("./commands/backup.ts")).backup,
  rebuild: async () => (await import("./commands/rebuild.ts")).rebuild,
  version: async () => (await import("./commands/version.ts")).version,
};

/** Names of earlier versions, which still work; help and completions do not show them. */
const renamed: Readonly<Record<string, string>> = {
  "migrate-to": "migrate-to-cluster",
  "migrate-from": "migrate-from-cluster",
  "flags proposals": "flags change-requests",
  "projects end-old-key": "projects revoke-old-key",
};

/** The arguments of a call, with the current name of a command that was renamed. */
export function withCurrentName(args: readonly string[]): string[] {
  for (const words of [1, 2]) {
    const name = renamed[args.slice(0, words).join(" ")];
    if (name !== undefined) return [...name.split(" "), ...args.slice(words)];
  }
  return [...args];
}

/** It prints a script that knows all the others. */
const describer = "completions";

/** What the program needs of the tree when its first argument is this: that command alone, or where it is none, all of them. */
export async function commandsFor(name: string | undefined): Promise<Command[]> {
  const isOne = name !== undefined && name !== describer && Object.hasOwn(loaders, name);
  return await Promise.all(isOne ? [loaders[name]!()] : Object.values(loaders).map((load) => load()));
}

/** The tree of all commands. */
export const createProgram = async () => programOf(await commandsFor(undefined));
