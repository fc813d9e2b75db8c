/** Two nodes that both load events, each some projects, are one Flagkeep. */

import { twoNodes } from "./two-nodes-suite.ts";

twoNodes("rows", "partitions");
