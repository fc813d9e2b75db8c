/**
 * Checks the packages inside the executables for known vulnerabilities: `make audit`, part of `make check`.
 *
 * Exits with 1 for high or critical ones. If the registry does not respond, a line reports it and the check
 * continues.
 */

interface Answer {
  metadata?: { vulnerabilities: Record<string, number> };
  vulnerabilities?: Record<string, { name: string; severity: string; range: string }>;
}

const { stdout } = Bun.spawnSync(["npm", "audit", "--omit", "dev", "--json", "--loglevel", "error"]);
const answer = answerIn(stdout.toString());
if (answer?.metadata === undefined) {
  console.log("SKIPPED: the registry does not tell about vulnerable packages.");
  process.exit(0);
}
const counts = answer.metadata.vulnerabilities;
const found = Object.values(answer.vulnerabilities ?? {});
for (const { name, severity, range } of found) console.log(`${severity}: ${name} ${range}`);
console.log(`${found.length} vulnerable packages inside the executables.`);
process.exit((counts.high ?? 0) + (counts.critical ?? 0) > 0 ? 1 : 0);

function answerIn(text: string): Answer | undefined {
  try {
    return JSON.parse(text) as Answer;
  } catch {
    return undefined;
  }
}
