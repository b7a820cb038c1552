// What HashiCorp's parser and formatter (as WebAssembly) and Grafana's types say against files.
// Reads {modules, hcl: {path: text}, dashboards: {path: text}}, writes {path: fault}, an empty text where there is none.
const { readFileSync, writeFileSync } = require("node:fs");
const { createRequire } = require("node:module");
const { join } = require("node:path");

const asked = JSON.parse(readFileSync(0, "utf8"));
const load = createRequire(join(asked.modules, "node_modules", "any.js"));

// JSON writes the values of enumerations as plain texts. The query of an annotation is its data source's, not Grafana's.
const TYPES = `import type { AnnotationQuery, Dashboard } from "@grafana/schema";
type Plain<T> = T extends string ? \`\${T}\` : T extends (infer U)[] ? Plain<U>[] : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
type Annotations = { list?: (AnnotationQuery & { expr?: string; step?: string; titleFormat?: string; textFormat?: string })[] };
type Board = Plain<Partial<Omit<Dashboard, "annotations">> & { annotations?: Annotations }>;
`;

async function hclSays(path, text) {
  try {
    await load("@cdktf/hcl2json").parse(path, text);
  } catch (error) {
    return String(error);
  }
  return (await load("@cdktf/hcl-tools").format(text)) === text ? "" : "not as `terraform fmt` would write it";
}

function dashboardsSay(dashboards) {
  const typescript = load("typescript");
  const names = Object.keys(dashboards);
  const files = names.map((_, at) => join(asked.folder, `dashboard${at}.ts`));
  names.forEach((name, at) => {
    writeFileSync(files[at], `${TYPES}export const board = ${dashboards[name].trim()} satisfies Board;\n`);
  });
  const options = {
    noEmit: true, strict: true, skipLibCheck: true, types: [], baseUrl: join(asked.modules, "node_modules"),
    module: typescript.ModuleKind.ESNext, moduleResolution: typescript.ModuleResolutionKind.Bundler,
    target: typescript.ScriptTarget.ES2022,
  };
  const found = typescript.getPreEmitDiagnostics(typescript.createProgram(files, options));
  const said = Object.fromEntries(names.map((name) => [name, ""]));
  for (const one of found) {
    const at = one.file === undefined ? 0 : files.indexOf(one.file.fileName);
    said[names[Math.max(at, 0)]] += `${typescript.flattenDiagnosticMessageText(one.messageText, "\n")}\n`;
  }
  return said;
}

(async () => {
  const said = {};
  for (const [path, text] of Object.entries(asked.hcl)) said[path] = await hclSays(path, text);
  if (Object.keys(asked.dashboards).length) Object.assign(said, dashboardsSay(asked.dashboards));
  process.stdout.write(JSON.stringify(said));
})();
