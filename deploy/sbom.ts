/** What is inside the executables, as a CycloneDX document: the packages, as npm tells them, and Bun. */

interface Sbom {
  serialNumber?: string;
  metadata: { timestamp?: string };
  components: Record<string, unknown>[];
}

/** Without what differs from one time to the next: two releases of one commit have the same. @throws npm cannot tell */
export function sbomText(root: string, bunVersion: string): string {
  const { stdout, stderr, success } = Bun.spawnSync(
    ["npm", "sbom", "--sbom-format", "cyclonedx", "--omit", "dev", "--loglevel", "error"],
    { cwd: root },
  );
  if (!success) throw new Error(`npm cannot list the packages: ${stderr.toString().trim()}`);
  const { serialNumber: _, ...sbom } = JSON.parse(stdout.toString()) as Sbom;
  delete sbom.metadata.timestamp;
  sbom.components.push({
    type: "platform",
    name: "bun",
    version: bunVersion,
    purl: `pkg:npm/bun@${bunVersion}`,
    licenses: [{ license: { id: "MIT" } }],
  });
  return `${JSON.stringify(sbom, null, 2)}\n`;
}
