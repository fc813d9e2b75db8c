/** Options that several commands have. */

import { Option } from "commander";
import { positiveInteger } from "./output.ts";

/** Help of what selects a project. */
export const projectHelp = "project id; optional if there is one";

export const projectOption = new Option("--project <id>", projectHelp).argParser(positiveInteger);

export const organizationOption = new Option(
  "--organization <id>",
  "organization id; optional if there is one",
);
