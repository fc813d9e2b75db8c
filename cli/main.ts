/** The executable's entry: the engine's role or a command, each with its own part of the program in memory and no other. */

import { unpackRole } from "../src/events/duckdb/native-folder.ts";
import { putProcessBehind } from "../src/lib/priority.ts";
import { engineRole } from "./roles.ts";

// No `await` at the top level: the executable holds compiled bytecode, which does not know it.
if (import.meta.main) void main();

async function main(): Promise<void> {
  // Whatever is written is for its owner alone.
  process.umask(0o077);
  if (process.argv[2] === engineRole) {
    const { runEngine } = await import("../src/engine/process.ts");
    const { storeRecovery } = await import("../src/serve/engine-recovery.ts");
    return await runEngine(storeRecovery);
  }
  if (process.argv[2] === unpackRole) {
    const { unpack } = await import("../src/events/duckdb/native-files.ts");
    try {
      return unpack(process.argv[3]!);
    } catch (error) {
      // For the process that asked, which says where and what to do.
      process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
      process.exit(1);
    }
  }
  // Loading the program takes a tenth of a second of a processor: already that yields to a running appliance.
  if (process.argv[2] === "backup" && process.argv[3] === "create") putProcessBehind();
  const { runProgram } = await import("./program.ts");
  const { commandsFor, withCurrentName } = await import("./commands.ts");
  const args = withCurrentName(process.argv.slice(2));
  await runProgram(await commandsFor(args[0]), args);
}
