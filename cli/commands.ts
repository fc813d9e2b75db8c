/** The command tree: the files of `commands/` are loaded on demand. */

import type { Command } from "commander";
import { createProgramFor } from "./program.ts";

const groups = () => import("./commands/operation-groups.ts");

/** In the order of help. */
const loaders: Record<string, () => Promise<Command>> = {
  serve: async () => (await import("./commands/serve.ts")).serve,
  init: async () => (await import("./commands/init.ts")).init,
  flags: async () => (await import("./commands/flags.ts")).flags,
  experiments: async () => (await groups()).experiments(),
  features: async () => (await groups()).features(),
  surveys: async () => (await groups()).surveys(),
  keys: async () => (await import("./commands/keys.ts")).keys,
  projects: async () => (await import("./commands/projects.ts")).projects,
  users: async () => (await import("./commands/users.ts")).users,
  members: async () => (await groups()).members(),
  roles: async () => (await groups()).roles(),
  webhooks: async () => (await import("./commands/webhooks.ts")).webhooks,
  dashboards: async () => (await groups()).dashboards(),
  insights: async () => (await groups()).insights(),
  annotations: async () => (await groups()).annotations(),
  "share-links": async () => (await groups()).shareLinks(),
  cohorts: async () => (await import("./commands/cohorts.ts")).cohorts,
  persons: async () => (await import("./commands/persons.ts")).persons,
  events: async () => (await groups()).events(),
  imports: async () => (await groups()).imports(),
  activity: async () => (await groups()).activity(),
  organization: async () => (await groups()).organization(),
  query: async () => (await import("./commands/query.ts")).query,
  web: async () => (await import("./commands/web.ts")).web,
  status: async () => (await import("./commands/status.ts")).status,
  top: async () => (await import("./commands/top.ts")).top,
  usage: async () => (await import("./commands/usage.ts")).usage,
  warnings: async () => (await import("./commands/warnings.ts")).warnings,
  healthcheck: async () => (await import("./commands/healthcheck.ts")).healthcheck,
  migrate: async () => (await import("./commands/migrate.ts")).migrate,
  cluster: async () => (await import("./commands/cluster.ts")).cluster,
  "migrate-events": async () => (await import("./commands/migrate-events.ts")).migrateEventsCommand,
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

/** Names from earlier versions that still work; hidden in help and completions. */
const renamed: Readonly<Record<string, string>> = {
  "migrate-to": "migrate-to-cluster",
  "migrate-from": "migrate-from-cluster",
  "flags proposals": "flags change-requests",
  "projects end-old-key": "projects revoke-old-key",
};

/** Replaces the former name of a renamed command in the arguments. */
export function replaceOldName(args: readonly string[]): string[] {
  for (const words of [1, 2]) {
    const name = renamed[args.slice(0, words).join(" ")];
    if (name !== undefined) return [...name.split(" "), ...args.slice(words)];
  }
  return [...args];
}

/** Its script contains all other commands. */
const describer = "completions";

/** Commands to load for this first argument: that command only, or all if it is not a command. */
export async function commandsFor(name: string | undefined): Promise<Command[]> {
  if (name === "--version") return [];
  const isOne = name !== undefined && name !== describer && Object.hasOwn(loaders, name);
  return await Promise.all(isOne ? [loaders[name]!()] : Object.values(loaders).map((load) => load()));
}

export const createProgram = async () => createProgramFor(await commandsFor(undefined));
