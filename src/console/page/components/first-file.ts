/**
 * Parts of Overview that other pages share, for the page's first file: each would be a file and a request of its own
 * otherwise, and Overview, the home page, is loaded with at most eight.
 */

import "../lib/csv.ts";
import "../model/activity.ts";
import "./chart-frame.tsx";
import "./name-fields.tsx";
