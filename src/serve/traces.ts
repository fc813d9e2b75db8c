/** Opens the exporter of traces, if a collector is configured. */

import type { Config } from "../config/settings.ts";
import type { Log } from "../log.ts";
import type { Traces } from "../operate/traces.ts";

/** Loaded only with a collector configured: the libraries take 7 MB. */
export async function getTraces(
  config: Pick<Config, "traces-endpoint" | "traces-sample">,
  log: Log,
): Promise<Traces | undefined> {
  if (config["traces-endpoint"] === "") return undefined;
  const { Traces } = await import("../operate/traces.ts");
  return new Traces({ endpoint: config["traces-endpoint"], samplePercent: config["traces-sample"] }, log);
}
