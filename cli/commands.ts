/** The command tree: the files of `commands/` are loaded on demand. */

import type { Command } from "commander";
import { createProgramFor } from "./program.ts";

const groups = () => import("./commands/operation-groups.ts");

/** By heading, in the order of help. */
const helpGroups: Record<string, Record<string, () => Promise<Command>>> = {
  "Server:": {
    serve: async () => (await import("./commands/serve.ts")).serve,
    init: async () => (await import("./commands/init.ts")).init,
    status: async () => (await import("./commands/status.ts")).status,
    top: async () => (await import("./commands/top.ts")).top,
    healthcheck: async () => (await import("./commands/healthcheck.ts")).healthcheck,
    doctor: async () => (await import("./commands/doctor.ts")).doctor,
  },
  "Flags and experiments:": {
    flags: async () => (await import("./commands/flags.ts")).flags,
    experiments: async () => (await groups()).experiments(),
    features: async () => (await groups()).features(),
    surveys: async () => (await groups()).surveys(),
  },
  "Events and persons:": {
    query: async () => (await import("./commands/query.ts")).query,
    web: async () => (await import("./commands/web.ts")).web,
    events: async () => (await groups()).events(),
    persons: async () => (await import("./commands/persons.ts")).persons,
    cohorts: async () => (await import("./commands/cohorts.ts")).cohorts,
    warnings: async () => (await import("./commands/warnings.ts")).warnings,
    usage: async () => (await import("./commands/usage.ts")).usage,
  },
  "Dashboards:": {
    dashboards: async () => (await groups()).dashboards(),
    insights: async () => (await groups()).insights(),
    annotations: async () => (await groups()).annotations(),
    "share-links": async () => (await groups()).shareLinks(),
  },
  "Access:": {
    keys: async () => (await import("./commands/keys.ts")).keys,
    projects: async () => (await import("./commands/projects.ts")).projects,
    organization: async () => (await groups()).organization(),
    users: async () => (await import("./commands/users.ts")).users,
    members: async () => (await groups()).members(),
    roles: async () => (await groups()).roles(),
    webhooks: async () => (await import("./commands/webhooks.ts")).webhooks,
    activity: async () => (await groups()).activity(),
  },
  "Import and export:": {
    import: async () => (await import("./commands/import.ts")).importEvents,
    imports: async () => (await groups()).imports(),
    export: async () => (await import("./commands/export.ts")).exportData,
  },
  "Backups and repair:": {
    backup: async () => (await import("./commands/backup.ts")).backup,
    scrub: async () => (await import("./commands/scrub.ts")).scrub,
    rebuild: async () => (await import("./commands/rebuild.ts")).rebuild,
    migrate: async () => (await import("./commands/migrate.ts")).migrate,
  },
  "Cluster:": {
    cluster: async () => (await import("./commands/cluster.ts")).cluster,
    "migrate-events": async () => (await import("./commands/migrate-events.ts")).migrateEventsCommand,
    "migrate-to-cluster": async () => (await import("./commands/migrate-to.ts")).migrateTo,
    "migrate-from-cluster": async () => (await import("./commands/migrate-to.ts")).migrateFrom,
  },
  "Tools:": {
    mcp: async () => (await import("./commands/mcp.ts")).mcp,
    completions: async () => (await import("./commands/completions.ts")).completions,
    version: async () => (await import("./commands/version.ts")).version,
  },
};

const loaders = new Map(
  Object.entries(helpGroups).flatMap(([heading, commands]) =>
    Object.entries(commands).map(
      ([name, load]) => [name, async () => (await load()).helpGroup(heading)] as const,
    ),
  ),
);

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
  const load = name === undefined || name === describer ? undefined : loaders.get(name);
  return await Promise.all(load ? [load()] : [...loaders.values()].map((each) => each()));
}

export const createProgram = async () => createProgramFor(await commandsFor(undefined));
