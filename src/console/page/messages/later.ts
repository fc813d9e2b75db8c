/** Messages of pages that are loaded later: they are loaded with them, not with the first page. */

import { dashboards } from "./en/dashboards.ts";
import { earlyAccess } from "./en/early-access.ts";
import { experiments } from "./en/experiments.ts";
import { explore } from "./en/explore.ts";
import { instance } from "./en/instance.ts";
import { cohorts, people } from "./en/people.ts";
import { sql } from "./en/sql.ts";
import { surveys } from "./en/surveys.ts";
import { webExperiments } from "./en/web-experiments.ts";

export const lazyMessages = {
  cohorts,
  dashboards,
  earlyAccess,
  experiments,
  explore,
  instance,
  people,
  sql,
  surveys,
  webExperiments,
};
