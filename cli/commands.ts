/** The tree of commands: one file per command under `commands/`. */

import type { Command } from "commander";
import { backup } from "./commands/backup.ts";
import { cohorts } from "./commands/cohorts.ts";
import { completions } from "./commands/completions.ts";
import { doctor } from "./commands/doctor.ts";
import { exportData } from "./commands/export.ts";
import { flags } from "./commands/flags.ts";
import { healthcheck } from "./commands/healthcheck.ts";
import { importEvents } from "./commands/import.ts";
import { init } from "./commands/init.ts";
import { keys } from "./commands/keys.ts";
import { mcp } from "./commands/mcp.ts";
import { members } from "./commands/members.ts";
import { migrate } from "./commands/migrate.ts";
import { migrateEvents } from "./commands/migrate-events.ts";
import { migrateFrom, migrateTo } from "./commands/migrate-to.ts";
import { organization } from "./commands/organization.ts";
import { persons } from "./commands/persons.ts";
import { projects } from "./commands/projects.ts";
import { query } from "./commands/query.ts";
import { rebuild } from "./commands/rebuild.ts";
import { roles } from "./commands/roles.ts";
import { scrub } from "./commands/scrub.ts";
import { serve } from "./commands/serve.ts";
import { status } from "./commands/status.ts";
import { top } from "./commands/top.ts";
import { usage } from "./commands/usage.ts";
import { users } from "./commands/users.ts";
import { version } from "./commands/version.ts";
import { warnings } from "./commands/warnings.ts";
import { programOf } from "./program.ts";

/** In the order in which help lists them. */
export const commands: readonly Command[] = [
  serve,
  init,
  flags,
  keys,
  projects,
  users,
  members,
  roles,
  cohorts,
  persons,
  organization,
  query,
  status,
  top,
  usage,
  warnings,
  healthcheck,
  migrate,
  migrateEvents,
  migrateTo,
  migrateFrom,
  doctor,
  scrub,
  mcp,
  completions,
  exportData,
  importEvents,
  backup,
  rebuild,
  version,
];

/** The tree of all commands. */
export const createProgram = () => programOf(commands);
