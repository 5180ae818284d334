//! The look of a page: one style sheet, two schemes of colours, and rules for narrow screens and paper.

use crate::plot::{series_variables, style_inline};

const LIGHT: &str = "--page:#f4f5f7;--paper:#ffffff;--ink:#1c212a;--muted:#5c6470;--grid:#e6e9ed;\
--axis:#aab2bd;--accent:#0067a5;--soft:#eaf3f9;--code:#f1f3f5;--shadow:0 1px 2px rgb(20 30 45/.06),0 4px 16px rgb(20 30 45/.05);";

const DARK: &str = "--page:#0f1114;--paper:#16181c;--ink:#e8eaee;--muted:#a0a7b2;--grid:#2a2e35;\
--axis:#5a626e;--accent:#6cb8ea;--soft:#1a2a36;--code:#1f2328;--shadow:0 0 0 1px #24282e;";

const RULES: &str = "\
*{box-sizing:border-box}
html{color-scheme:light dark;-webkit-text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0;background:var(--page);color:var(--ink);\
font:16px/1.55 system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif}
header,nav,main,footer{max-width:70rem;margin:0 auto;padding:0 1.5rem}
header{padding-top:3rem}
h1{margin:0;font-size:clamp(1.7rem,1.2rem + 2vw,2.5rem);line-height:1.15;letter-spacing:-.02em;font-weight:700}
.lead{margin:.6rem 0 0;max-width:46rem;font-size:1.1rem;color:var(--muted)}
.facts{display:flex;flex-wrap:wrap;gap:.4rem 1.6rem;margin:1.1rem 0 0;font-size:.9rem}
.facts div{display:flex;gap:.45rem}
.facts dt{color:var(--muted)}
.facts dd{margin:0;font-weight:500;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
pre{margin:1rem 0;padding:.8rem 1rem;overflow-x:auto;background:var(--code);border-radius:8px;\
font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.command{margin-top:1.2rem;background:var(--paper);box-shadow:var(--shadow);white-space:pre-wrap;overflow-wrap:anywhere}
.command code::before{content:'$ ';color:var(--accent);font-weight:700}
nav{display:flex;flex-wrap:wrap;gap:.35rem .5rem;margin-top:1.4rem}
nav a{padding:.2rem .75rem;border-radius:99px;background:var(--soft);color:var(--accent);\
font-size:.88rem;font-weight:500;text-decoration:none}
nav a:hover{text-decoration:underline}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(10.5rem,1fr));gap:1rem;margin-top:1.8rem}
.figure{display:flex;flex-direction:column;padding:.9rem 1.1rem;background:var(--paper);\
border-radius:12px;box-shadow:var(--shadow)}
.figure .name{font-size:.82rem;color:var(--muted)}
.figure .value{font-size:1.6rem;font-weight:650;line-height:1.3;letter-spacing:-.01em;font-variant-numeric:tabular-nums}
.figure .remark{font-size:.82rem;color:var(--muted)}
section{margin-top:1.8rem;padding:1.5rem 1.6rem 1.6rem;background:var(--paper);border-radius:14px;\
box-shadow:var(--shadow);scroll-margin-top:1rem}
h2{margin:0 0 .8rem;font-size:1.3rem;line-height:1.25;letter-spacing:-.01em;font-weight:650}
section>p{max-width:46rem;margin:.6rem 0}
.scroll{overflow-x:auto;margin:1rem 0}
table{border-collapse:collapse;min-width:min(100%,24rem);font-size:.94rem}
caption{padding-bottom:.5rem;text-align:left;color:var(--muted);font-size:.88rem}
th,td{padding:.42rem 1.1rem .42rem 0;text-align:left;vertical-align:baseline;border-bottom:1px solid var(--grid)}
th{font-size:.82rem;font-weight:600;color:var(--muted);border-bottom-color:var(--axis);white-space:nowrap}
.number{padding-left:1.1rem;text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.best{color:var(--accent)}
.row{display:flex;flex-wrap:wrap;gap:1.4rem;align-items:flex-start;margin:1rem 0}
figure{margin:0;min-width:0;max-width:100%}
.row:not(.single) figure{flex:0 1 auto}
.row figure.drawing{flex:1 1 24rem;max-width:35rem;overflow-x:auto}
figure img,figure svg{display:block;max-width:100%;height:auto}
figure img{border-radius:8px}
.drawing svg{width:100%;min-width:22rem}
figcaption{margin-top:.5rem;max-width:46rem;font-size:.86rem;color:var(--muted)}
footer{padding-top:1.6rem;padding-bottom:3rem;color:var(--muted);font-size:.85rem}
@media(max-width:40rem){header{padding-top:1.6rem}header,nav,main,footer{padding-left:.8rem;padding-right:.8rem}\
section{padding:1.1rem 1rem;border-radius:10px}}
@media print{body,section,.figure,.command{background:none;box-shadow:none}nav{display:none}section{padding:0}\
figure,tr{break-inside:avoid}}
";

/// The whole style sheet.
pub(super) fn sheet() -> String {
    format!(
        ":root{{{LIGHT}{}}}\n@media(prefers-color-scheme:dark){{:root{{{DARK}{}}}}}\n{RULES}{}\n",
        series_variables(false),
        series_variables(true),
        style_inline()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_schemes_define_every_variable_that_is_used() {
        let sheet = sheet();
        for part in sheet.split("var(").skip(1) {
            let name = part.split(')').next().expect("a closed bracket");
            let definition = format!("{name}:");
            assert!(format!("{LIGHT}{}", series_variables(false)).contains(&definition), "{name} in light");
            assert!(format!("{DARK}{}", series_variables(true)).contains(&definition), "{name} in dark");
        }
        assert_eq!(sheet.matches('{').count(), sheet.matches('}').count());
    }
}
