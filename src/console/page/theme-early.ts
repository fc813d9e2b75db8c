/** Runs before anything is painted, so that a chosen theme never flashes the other one. */

import { applyTheme, storedTheme } from "./lib/theme.ts";

applyTheme(storedTheme());
