/** The Debian package of a release: the executable, its systemd service and a file for its settings. */

import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const deploy = import.meta.dir;
const scripts = ["postinst", "prerm", "postrm"] as const;

export const hasDpkg = (): boolean => Bun.which("dpkg-deb") !== null;

/**
 * Builds `flagkeep_VERSION_ARCH.deb`; the same files make the same package.
 *
 * @param arch  as Debian names it.
 * @param level how hard it is compressed, 1 to 9.
 * @returns its path.
 */
export function writeDebianPackage(
  executable: string,
  {
    version,
    arch,
    out,
    level = 6,
  }: { version: string; arch: "amd64" | "arm64"; out: string; level?: number },
): string {
  const root = mkdtempSync(join(tmpdir(), "flagkeep-deb-"));
  try {
    const put = (path: string, text: string, mode: number) => {
      const target = join(root, path);
      mkdirSync(join(target, ".."), { recursive: true });
      writeFileSync(target, text);
      chmodSync(target, mode);
    };
    chmodSync(root, 0o755);
    mkdirSync(join(root, "usr/bin"), { recursive: true });
    copyFileSync(executable, join(root, "usr/bin/flagkeep"));
    chmodSync(join(root, "usr/bin/flagkeep"), 0o755);
    const unit = readFileSync(join(deploy, "flagkeep.service"), "utf8");
    put("lib/systemd/system/flagkeep.service", unit.replaceAll("/usr/local/bin/", "/usr/bin/"), 0o644);
    // May contain S3 keys.
    put("etc/flagkeep.env", readFileSync(join(deploy, "debian/flagkeep.env"), "utf8"), 0o600);
    put("usr/share/doc/flagkeep/copyright", readFileSync(join(deploy, "../LICENSE"), "utf8"), 0o644);
    put("DEBIAN/conffiles", "/etc/flagkeep.env\n", 0o644);
    for (const name of scripts) {
      put(`DEBIAN/${name}`, readFileSync(join(deploy, "debian", name), "utf8"), 0o755);
    }
    const kibibytes = Math.ceil(statSync(executable).size / 1024);
    put("DEBIAN/control", control(version, arch, kibibytes), 0o644);
    const path = join(out, `flagkeep_${version}_${arch}.deb`);
    // gzip: every dpkg supports it, and it is fast.
    const built = Bun.spawnSync(
      ["dpkg-deb", "--root-owner-group", "-Zgzip", `-z${level}`, "--build", root, path],
      {
        env: { PATH: process.env.PATH, SOURCE_DATE_EPOCH: "0" },
        stderr: "pipe",
        stdout: "ignore",
      },
    );
    if (!built.success) throw new Error(`dpkg-deb failed: ${built.stderr.toString().trim()}`);
    return path;
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

function control(version: string, arch: string, kibibytes: number): string {
  return `Package: flagkeep
Version: ${version}
Architecture: ${arch}
Maintainer: Flagkeep <flagkeep@localhost>
Installed-Size: ${kibibytes}
Depends: libc6, libstdc++6, passwd
Section: net
Priority: optional
Description: feature flags and event capture
 A server for feature flags and events that SDKs of PostHog speak to, in one
 executable file.
`;
}
