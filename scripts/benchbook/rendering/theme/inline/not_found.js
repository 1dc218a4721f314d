(function(p){var code=location.pathname.slice(p.root.length).split("/")[0];
if(location.pathname.indexOf(p.root)===0&&p.languages.indexOf(code)>=0)fetch(p.root+code+"/404.html").then(function(r){return r.ok?r.text():null}).then(function(h){if(h){document.open();document.write(h);document.close()}})
})(JSON.parse(document.getElementById("site-places").textContent))
