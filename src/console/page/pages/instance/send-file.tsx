/** Imports a file in three steps: the file, its columns, and the result of a check, after which it is loaded. */

import { useEffect, useState } from "preact/hooks";
import { Checkbox, FileField, Select } from "../../components/fields.tsx";
import { FormDialog } from "../../components/form.tsx";
import { Button } from "../../components/primitives.tsx";
import { Stepper } from "../../components/stepper.tsx";
import { toast } from "../../components/toast.tsx";
import { queryString, request } from "../../lib/api.ts";
import type { Import } from "../../lib/api-types.ts";
import { useForm } from "../../lib/form.ts";
import { type Preview, previewBytes, readPreview } from "../../lib/preview.ts";
import { useResource } from "../../lib/resource.ts";
import { project, projects } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import { type ColumnRule, ImportColumns, mapRules, requiredFields } from "./import-columns.tsx";
import { formatProgress, importPath, isBusy } from "./import-progress.ts";
import { ImportSummaryView } from "./import-summary.tsx";

const w = lazyMessages.instance.imports;
/** Below the server's default body limit. */
const partBytes = 8_000_000;
const checkMs = 500;

type Step = keyof typeof w.steps;
const steps = Object.keys(w.steps) as Step[];
const actions: Record<Step, string> = { file: w.next, columns: w.send, check: w.load };

export function SendFile({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const [step, setStep] = useState<Step>("file");
  const [file, setFile] = useState<File>();
  const [preview, setPreview] = useState<Preview>();
  const [rules, setRules] = useState<readonly ColumnRule[]>(requiredFields);
  const [sent, setSent] = useState<number>();
  const [run, setRun] = useState<Import>();
  useEffect(() => {
    setPreview(undefined);
    setRules(requiredFields);
    if (file === undefined) return;
    let isWanted = true;
    void file
      .slice(0, previewBytes)
      .text()
      .then((text) => {
        if (isWanted) setPreview(readPreview(text, file.size > previewBytes));
      });
    return () => {
      isWanted = false;
    };
  }, [file]);
  const checked = useResource<Import>(
    run === undefined ? null : `import ${run.id}`,
    (signal) => request(importPath(run!), { signal }),
    checkMs,
  );
  const result = run === undefined ? undefined : checked.data;
  const form = useForm(
    { isDry: true, target: String(project.value?.id ?? "") },
    async ({ isDry, target }) => {
      if (file === undefined) return;
      if (step === "file") return setStep("columns");
      if (step === "columns") {
        const options = { isDry, target, rules, onSent: setSent };
        const started = await upload(file, options).finally(() => setSent(undefined));
        if (isDry) {
          setRun(started);
          return setStep("check");
        }
      } else await request(importPath(run!, "start/"), { method: "POST", body: { dry_run: false } });
      toast(w.started(file.name));
      onDone();
    },
  );
  /** The columns of an uploaded file cannot be changed: it is uploaded again. */
  const goBack = () =>
    form.run(async () => {
      if (run !== undefined) await request(importPath(run), { method: "DELETE" });
      setRun(undefined);
      setStep(step === "check" ? "columns" : "file");
    });
  const isReady = file !== undefined && !form.isBusy && (step !== "check" || result?.state === "done");
  return (
    <FormDialog
      title={w.add}
      form={form}
      action={actions[step]}
      size="large"
      isDisabled={!isReady}
      // A file that was checked stays in the list and can be loaded from there.
      onClose={run === undefined ? onClose : onDone}
      actions={
        <>
          {step !== "file" && (
            <Button
              isDisabled={form.isBusy || (run !== undefined && result === undefined)}
              onClick={() => void goBack()}
            >
              {w.back}
            </Button>
          )}
          <Button kind="main" type="submit" isDisabled={!isReady}>
            {actions[step]}
          </Button>
        </>
      }
    >
      <Stepper
        label={w.stepsTitle}
        steps={steps.map((name) => ({ name: w.steps[name] }))}
        current={steps.indexOf(step)}
      />
      {/* Hidden, not removed: the field still shows the chosen file. */}
      <div hidden={step !== "file"}>
        <FileField
          label={w.file}
          help={w.help}
          onChoose={(chosen) => {
            setFile(chosen);
            if (chosen !== undefined) setStep("columns");
          }}
        />
      </div>
      {step === "columns" && (
        <>
          <ImportColumns preview={preview} rules={rules} onChange={setRules} />
          <Select
            label={messages.frame.project}
            choices={projects.value.map(({ id, name }) => [String(id), name] as const)}
            {...form.choice("target")}
          />
          <Checkbox label={w.dryRunHelp} {...form.toggle("isDry")} />
        </>
      )}
      {step === "check" && (
        <>
          <p class="muted number" role="status">
            {result === undefined || isBusy(result) ? w.checking : formatProgress(result)}
          </p>
          {result?.error && <p class="error">{result.error}</p>}
          {result?.summary && <ImportSummaryView summary={result.summary} isOpen />}
        </>
      )}
      {sent !== undefined && <progress aria-label={w.send} max={file?.size ?? 1} value={sent} />}
    </FormDialog>
  );
}

/** Uploads a file in parts and starts its check or its import. */
async function upload(
  file: File,
  {
    isDry,
    target,
    rules,
    onSent,
  }: { isDry: boolean; target: string; rules: readonly ColumnRule[]; onSent: (bytes: number) => void },
): Promise<Import> {
  const query = queryString({ name: file.name, dry_run: isDry, start: false });
  const map = mapRules(rules).map((rule) => `&map=${encodeURIComponent(rule)}`);
  onSent(0);
  const created = await request<Import>(`/api/projects/${target}/imports/${query}${map.join("")}`, {
    method: "POST",
  });
  for (let offset = 0; offset < file.size; offset += partBytes) {
    await request(importPath(created, `parts/?offset=${offset}`), {
      method: "POST",
      file: file.slice(offset, offset + partBytes),
    });
    onSent(Math.min(file.size, offset + partBytes));
  }
  return await request<Import>(importPath(created, "start/"), { method: "POST", body: {} });
}
