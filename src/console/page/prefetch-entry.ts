/**
 * Runs before the first paint, so that the theme never flashes; and prefetches the session while the page's script
 * loads.
 */

import { prefetch } from "./lib/prefetch.ts";
import { applyTheme, storedTheme } from "./lib/theme.ts";

applyTheme(storedTheme());
prefetch();
