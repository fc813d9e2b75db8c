/** Entry point: the engine process, an HTTP worker or a command; each loads only its own part of the program. */

import { unpackRole } from "../src/events/duckdb/native-folder.ts";
import { lowerProcessPriority } from "../src/lib/operating-system.ts";
import { engineProcessKind, sqliteCheckRole, workerProcessKind } from "./subprocess.ts";

// No top-level `await`: compiled bytecode does not support it.
if (import.meta.main) void main();

async function main(): Promise<void> {
  // New files are readable by their owner only.
  process.umask(0o077);
  if (process.argv[2] === engineProcessKind) {
    const { runEngine } = await import("../src/engine/process.ts");
    const { storeRecovery } = await import("../src/serve/engine-recovery.ts");
    return await runEngine(storeRecovery);
  }
  if (process.argv[2] === workerProcessKind) {
    const { runWorker } = await import("../src/serve/workers/process.ts");
    return await runWorker();
  }
  if (process.argv[2] === sqliteCheckRole) {
    const { corruptSqliteFiles } = await import("../src/operate/sqlite-check.ts");
    process.stdout.write(`${JSON.stringify(corruptSqliteFiles(process.argv[3]!))}\n`);
    return;
  }
  if (process.argv[2] === unpackRole) {
    const { unpack } = await import("../src/events/duckdb/native-files.ts");
    try {
      return unpack(process.argv[3]!);
    } catch (error) {
      // For the parent process, which adds where and what to do.
      process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
      process.exit(1);
    }
  }
  // Loading the program takes 0.1 s of CPU time: even that must yield to a running server.
  if (process.argv[2] === "backup" && process.argv[3] === "create") lowerProcessPriority();
  const { runProgram } = await import("./program.ts");
  const { commandsFor, replaceOldName: withCurrentName } = await import("./commands.ts");
  const args = withCurrentName(process.argv.slice(2));
  await runProgram(await commandsFor(args[0]), args);
}
