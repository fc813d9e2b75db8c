/** Diagnoses problems and suggests fixes. */

import { useState } from "preact/hooks";
import { Badge, Button } from "../../components/primitives.tsx";
import { toastError } from "../../components/toast.tsx";
import { request } from "../../lib/api.ts";
import type { Doctor as Findings } from "../../lib/api-types.ts";
import { lazyMessages } from "../../messages/later.ts";

const w = lazyMessages.instance;

const tones: Record<string, "good" | "warn" | "bad" | "plain"> = {
  ok: "good",
  warning: "warn",
  error: "bad",
};

export function Doctor() {
  const [found, setFound] = useState<Findings>();
  const [isBusy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    try {
      setFound(await request<Findings>("/api/instance/doctor/"));
    } catch (error) {
      toastError(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <section class="card stack" aria-busy={isBusy}>
      <div class="row apart">
        <h2>{w.doctor}</h2>
        <Button icon="check" isDisabled={isBusy} onClick={() => void run()}>
          {w.runDoctor}
        </Button>
      </div>
      {found ? (
        <>
          <p role="status">
            {found.errors + found.warnings === 0 ? w.doctorOk : w.doctorFound(found.errors, found.warnings)}
          </p>
          <ul class="lines">
            {found.findings.map(({ check, level, message, hint }) => (
              <li key={`${check} ${message}`}>
                <Badge tone={tones[level] ?? "plain"}>{w.levels[level] ?? level}</Badge> <b>{check}</b>{" "}
                {message}
                {hint && <p class="help">{hint}</p>}
              </li>
            ))}
          </ul>
        </>
      ) : (
        <p class="help">{w.doctorHelp}</p>
      )}
    </section>
  );
}
