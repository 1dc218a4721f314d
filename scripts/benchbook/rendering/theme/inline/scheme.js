(function(r){r.classList.replace("no-js","js");var s=null;try{s=localStorage.getItem("scheme")}catch(e){}
r.dataset.mdColorScheme=(s||(matchMedia("(prefers-color-scheme: dark)").matches?"dark":"light"))==="dark"?"slate":"default"})(document.documentElement)
